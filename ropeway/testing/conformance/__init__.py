"""The conformance suite of stores: one file per command.

To run them on a store of your own, with pytest-asyncio in its auto mode:

    from ropeway.testing.conformance import *

    @pytest.fixture
    def new_handle():
        return lambda: MyStore(...)

`new_handle` answers a function; each call of it answers another handle on the same jobs. What is tested
here `docs/store-contract.md` says in words.
"""

from .add import TestAdd
from .adds import TestSettleAdds
from .cancel import TestCancel
from .change import TestChange
from .claim import (
    TestClaim,
    TestClaimByName,
    TestClaimLimit,
    TestClaimOfDelayed,
    TestClaimsAtOnce,
    TestClaimWhilePaused,
    TestRepeatedClaim,
)
from .clean import TestClean
from .configure import TestConfigure
from .count import TestCount, TestCountWaiting
from .events import TestDrained, TestEvents, TestEventsFromAPlace, TestEventsTrimmed, TestPublish, TestTrimEvents
from .fence import TestRepeatedSettle, TestSettleFence
from .find import TestFind, TestFindPages
from .fixtures import sibling, store
from .flows import (
    TestAddFlow,
    TestAwaited,
    TestChildPolicies,
    TestChildrenAtRunTime,
    TestIdsThatComeBack,
    TestRelease,
    TestRetryOfParents,
)
from .forking import TestFork
from .get import TestClock, TestGet, TestQueues
from .handles import TestCancelledCalls, TestClosed, TestLoops, TestThreads
from .history import TestHistory
from .listen import TestListen, TestListener
from .log import TestClearLog, TestLog
from .metrics import TestMetrics
from .moves import TestMoves
from .obliterate import TestObliterate
from .order import TestClaimOrder
from .payloads import TestNamesOfThings, TestPayloads
from .promote import TestPromote
from .remember import TestRemember, TestRememberForAWhile, TestRememberWithExpectation
from .remove import TestRemove
from .renew import TestRenew
from .retention import TestKeptForEver, TestSettleRetention, TestTickRetention
from .retry import TestRetryByHand
from .revoked import TestRevoked
from .settle import (
    TestSettleBack,
    TestSettleBatch,
    TestSettleComplete,
    TestSettleDurability,
    TestSettleFail,
    TestSettleHistory,
    TestSettleRetry,
    TestSettleThenClaim,
)
from .tags import TestTags
from .tick import (
    TestTick,
    TestTickGivesUp,
    TestTickPromotes,
    TestTickRecovers,
    TestTickSaysWhy,
    TestTickSpares,
    TestTickTimer,
)
from .update import TestUpdate
from .waiting_claims import TestWaitingClaim

__all__ = [
    "TestAdd",
    "TestAddFlow",
    "TestAwaited",
    "TestCancel",
    "TestCancelledCalls",
    "TestChange",
    "TestChildPolicies",
    "TestChildrenAtRunTime",
    "TestClaim",
    "TestClaimByName",
    "TestClaimLimit",
    "TestClaimOfDelayed",
    "TestClaimOrder",
    "TestClaimWhilePaused",
    "TestClaimsAtOnce",
    "TestClean",
    "TestClearLog",
    "TestClock",
    "TestClosed",
    "TestConfigure",
    "TestCount",
    "TestCountWaiting",
    "TestDrained",
    "TestEvents",
    "TestEventsFromAPlace",
    "TestEventsTrimmed",
    "TestFind",
    "TestFindPages",
    "TestFork",
    "TestGet",
    "TestHistory",
    "TestIdsThatComeBack",
    "TestKeptForEver",
    "TestListen",
    "TestListener",
    "TestLog",
    "TestLoops",
    "TestMetrics",
    "TestMoves",
    "TestNamesOfThings",
    "TestObliterate",
    "TestPayloads",
    "TestPromote",
    "TestPublish",
    "TestQueues",
    "TestRelease",
    "TestRemember",
    "TestRememberForAWhile",
    "TestRememberWithExpectation",
    "TestRemove",
    "TestRenew",
    "TestRepeatedClaim",
    "TestRepeatedSettle",
    "TestRetryByHand",
    "TestRetryOfParents",
    "TestRevoked",
    "TestSettleAdds",
    "TestSettleBack",
    "TestSettleBatch",
    "TestSettleComplete",
    "TestSettleDurability",
    "TestSettleFail",
    "TestSettleFence",
    "TestSettleHistory",
    "TestSettleRetention",
    "TestSettleRetry",
    "TestSettleThenClaim",
    "TestTags",
    "TestThreads",
    "TestTick",
    "TestTickGivesUp",
    "TestTickPromotes",
    "TestTickRecovers",
    "TestTickRetention",
    "TestTickSaysWhy",
    "TestTickSpares",
    "TestTickTimer",
    "TestTrimEvents",
    "TestUpdate",
    "TestWaitingClaim",
    "sibling",
    "store",
]

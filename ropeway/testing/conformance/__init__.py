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
from .dead_letters import TestDeadLetters
from .dedupe import TestDedupe, TestReleaseDedupe
from .dedupe_bundles import TestDedupeBundles
from .dedupe_ends import TestDedupeEnds
from .dedupe_modes import TestDebounce, TestKeepLast, TestSupersede, TestThrottle
from .events import (
    TestDrained,
    TestEvents,
    TestEventsFromAPlace,
    TestEventsNewestFirst,
    TestEventsTrimmed,
    TestPublish,
    TestTrimEvents,
)
from .expiry import TestExpiry
from .fence import TestRepeatedSettle, TestSettleFence
from .find import TestFind, TestFindPages
from .fixtures import sibling, store
from .flow_adds import TestAddFlow
from .flow_awaited import TestAwaited
from .flow_policies import TestChildPolicies, TestIdsThatComeBack
from .flow_releases import TestRelease
from .flow_retries import TestRetryOfParents
from .flow_run_time import TestChildrenAtRunTime
from .forking import TestFork
from .get import TestClock, TestGet, TestQueues
from .handles import TestCancelledCalls, TestClosed, TestLoops, TestThreads
from .history import TestHistory
from .kept_marks import TestKeptMarks, TestLargestMarks
from .listen import TestListen, TestListener
from .log import TestClearLog, TestLog
from .marks import TestAwaitedMarks, TestMarks
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
from .schedules import TestReadSchedules, TestTickSchedules, TestWriteSchedules
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
from .stages import TestDeleteAfter, TestRetentionCallbacks, TestStages, TestStale
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
from .webhooks import TestWebhooks

__all__ = [
    "TestAdd",
    "TestAddFlow",
    "TestAwaited",
    "TestAwaitedMarks",
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
    "TestDeadLetters",
    "TestDebounce",
    "TestDedupe",
    "TestDedupeBundles",
    "TestDedupeEnds",
    "TestDeleteAfter",
    "TestDrained",
    "TestEvents",
    "TestEventsFromAPlace",
    "TestEventsNewestFirst",
    "TestEventsTrimmed",
    "TestExpiry",
    "TestFind",
    "TestFindPages",
    "TestFork",
    "TestGet",
    "TestHistory",
    "TestIdsThatComeBack",
    "TestKeepLast",
    "TestKeptForEver",
    "TestKeptMarks",
    "TestLargestMarks",
    "TestListen",
    "TestListener",
    "TestLog",
    "TestLoops",
    "TestMarks",
    "TestMetrics",
    "TestMoves",
    "TestNamesOfThings",
    "TestObliterate",
    "TestPayloads",
    "TestPromote",
    "TestPublish",
    "TestQueues",
    "TestReadSchedules",
    "TestRelease",
    "TestReleaseDedupe",
    "TestRemember",
    "TestRememberForAWhile",
    "TestRememberWithExpectation",
    "TestRemove",
    "TestRenew",
    "TestRepeatedClaim",
    "TestRepeatedSettle",
    "TestRetentionCallbacks",
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
    "TestStages",
    "TestStale",
    "TestSupersede",
    "TestTags",
    "TestThreads",
    "TestThrottle",
    "TestTick",
    "TestTickGivesUp",
    "TestTickPromotes",
    "TestTickRecovers",
    "TestTickRetention",
    "TestTickSaysWhy",
    "TestTickSchedules",
    "TestTickSpares",
    "TestTickTimer",
    "TestTrimEvents",
    "TestUpdate",
    "TestWaitingClaim",
    "TestWebhooks",
    "TestWriteSchedules",
    "sibling",
    "store",
]

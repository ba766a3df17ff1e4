"""Cases of one promise, one after the other on one store: opening a store costs more than most cases do."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from typing import Any, TypeAlias

from ..auditor import AuditedStore

ConformanceTest: TypeAlias = Callable[..., Awaitable[None]]


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any], ids: Iterable[str] | None = None
) -> Callable[[ConformanceTest], ConformanceTest]:
    """Runs a test for each case, on a store that is audited and emptied after it. A failure names its case.

    `pytest.mark.parametrize` gives a new store to each, and remains for tests that wait to be woken: a wake may come
    late, from the case before.
    """
    values = list(cases)
    labels = [repr(case) for case in values] if ids is None else list(ids)
    parameters = (names,) if isinstance(names, str) else names

    def decorate(test: ConformanceTest) -> ConformanceTest:
        signature = inspect.signature(test)
        missing = {*parameters} - signature.parameters.keys()
        assert values, f"{test.__name__} has no case"
        assert not missing, f"{test.__name__} does not take {missing}"

        kept = [parameter for parameter in signature.parameters.values() if parameter.name not in parameters]
        fixtures = signature.replace(parameters=kept)

        @wraps(test)
        async def run_all(*arguments: Any, **named: Any) -> None:
            bound = fixtures.bind(*arguments, **named).arguments
            store: AuditedStore = bound["store"]
            for label, case in zip(labels, values, strict=True):
                given = dict(zip(parameters, (case,) if isinstance(names, str) else case, strict=True))
                try:
                    await test(**bound, **given)
                    await store.check()
                except BaseException as error:
                    error.add_note(f"in the case {label} of {', '.join(parameters)}")
                    raise
                await store.start_over()

        vars(run_all)["__signature__"] = fixtures
        return run_all

    return decorate

"""JSON Schemas of payloads: checked when jobs are submitted, and again before they are given to a worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from ..errors import InvalidOption
from ..job.wrong_values import MOST_LISTED, WrongValue, listed, path_of
from ..showing import LONGEST_MESSAGE, on_one_line, shown
from .problems import Refused

MOST_FOUND: Final = MOST_LISTED
"""Most that are looked for in one request."""


class Schemas:
    """Validators by type, by queue, or by `queue/type`. A payload has to fit all that apply to it."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        if given is not None and not isinstance(given, Mapping):
            raise InvalidOption("schemas", f"cannot be {shown(given)}: give JSON Schemas by type or queue")
        self._validators: Final = {name: _validator(name, schema) for name, schema in (given or {}).items()}

    def __bool__(self) -> bool:
        return bool(self._validators)

    def wrong_values(self, queue: str, kind: str, payload: Any) -> list[WrongValue]:
        """Where a payload does not fit, up to a limit."""
        found: list[WrongValue] = []
        for name in dict.fromkeys((f"{queue}/{kind}", kind, queue)):
            if (validator := self._validators.get(name)) is not None:
                found += map(_wrong_value, islice(validator.iter_errors(payload), MOST_FOUND - len(found)))
        return found

    def check(self, jobs: Iterable[tuple[str, str, Any]]) -> None:
        """Refuses jobs, by queue, type and payload, if one does not fit; says which, and where."""
        if not self._validators:
            return
        errors: list[dict[str, Any]] = []
        details: list[str] = []
        for number, (queue, kind, payload) in enumerate(jobs):
            found = self.wrong_values(queue, kind, payload)
            errors += ({"job": number, "path": each.path, "problem": each.problem} for each in found)
            if found:
                details.append(f"job {number} ({kind}): {listed(found)}")
            if len(errors) >= MOST_FOUND:
                break
        if errors:
            detail = f"the payload does not fit its schema: {'; '.join(details)}"
            raise Refused(422, "invalid-payload", on_one_line(detail, LONGEST_MESSAGE), errors=errors[:MOST_FOUND])


def _validator(name: object, schema: Any) -> Any:
    if not isinstance(name, str):
        raise InvalidOption("schemas", f"have the key {shown(name)}: use the name of a type or a queue")
    try:
        import jsonschema_rs  # noqa: PLC0415 - large, and most brokers have no schemas
    except ModuleNotFoundError:
        raise InvalidOption("schemas", 'need a validator: pip install "ropeway[server]"') from None
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True, retriever=_refuse)
    except (ValueError, TypeError) as wrong:
        problem = getattr(wrong, "message", None) or str(wrong)
        raise InvalidOption(
            "schemas", f"of {name!r} is no JSON Schema: {on_one_line(problem, LONGEST_MESSAGE)}"
        ) from None


def _refuse(address: str) -> Any:
    """A schema must not make the server read files and call other servers."""
    raise ValueError(f"{address} is elsewhere: put it into $defs of the schema")


def _wrong_value(error: Any) -> WrongValue:
    return WrongValue(f"${path_of(error.instance_path)}", on_one_line(error.message))

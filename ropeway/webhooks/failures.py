"""Why a message was not delivered."""

from __future__ import annotations

from ..errors import RopewayError


class Refused(RopewayError):
    """It is not sent, now or later: its URL is not allowed."""


class Unreachable(RopewayError):
    """The receiver did not answer, or not in a way that can be read. It may later."""

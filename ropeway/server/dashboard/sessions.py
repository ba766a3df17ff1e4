"""Sessions of browsers: a token in a cookie that scripts and other sites cannot use.

The cookie holds the token itself, so that a revoked one ends its sessions, and a server keeps no list of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from ..authentication import caller_of
from ..origins import Origins
from ..problems import Refused

if TYPE_CHECKING:
    from .visits import Visit

COOKIE: Final = "ropeway_session"
LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
PROOF: Final = b"x-ropeway-request"
"""A header that pages of other sites cannot send unasked."""


def cookies_of(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    try:
        read = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in read.items()}


def with_cookie(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers with the session's token where programs send theirs."""
    given = list(headers)
    token = cookies_of(dict(given)).get(COOKIE)
    if token is None or any(name == b"authorization" for name, _ in given):
        return given
    return [*given, (b"authorization", b"Bearer " + token.encode("latin-1", "replace"))]


def check_same_site(origins: Origins, headers: Mapping[bytes, bytes]) -> None:
    """Refuses a write unless it is shown to come from a page of this dashboard."""
    site = headers.get(b"sec-fetch-site")
    if site not in (None, b"same-origin"):
        raise Refused(403, "foreign-origin", "requests of other sites' pages are not accepted")
    if site is None:
        origins.check_origin(headers)
    if site is None and b"origin" not in headers and PROOF not in headers:
        raise Refused(
            403, "no-origin", f"the browser did not say which page asks: programs send the header {PROOF.decode()}: 1"
        )


def remembered(visit: Visit, response: Response, token: str) -> Response:
    response.set_cookie(COOKIE, token, **_bounds(visit))
    return response


def forgotten(visit: Visit, response: Response) -> Response:
    response.delete_cookie(COOKIE, **_bounds(visit))
    return response


def _bounds(visit: Visit) -> dict[str, Any]:
    secure = visit.scope.get("scheme") == "https"
    # Not strict: a link to a page that somebody sent would lead to the login. Other sites' pages cannot write with it.
    return {"path": visit.root or "/", "secure": secure, "httponly": True, "samesite": "lax"}


def inner(path: str) -> str:
    """A path of the dashboard to go on to; "/" for anything that could lead elsewhere."""
    is_safe = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if is_safe else "/"


async def log_in(visit: Visit, token: str) -> None:
    """Raises `Refused` unless it is a valid token that may look."""
    headers = [(b"authorization", b"Bearer " + token.encode("ascii", "replace"))]
    visit.principal = await visit.broker.authenticator.principal(headers, caller_of(visit.scope))
    visit.need("read")

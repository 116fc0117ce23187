"""Access control of the studio: allowed hosts and origins, and the token for remote access."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Collection
from typing import Any
from urllib.parse import urlparse

from tornado.web import HTTPError, RequestHandler


def is_loopback(address: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class Guard:
    """Checks the host, origin and token of each request.

    The check of the Host header prevents DNS rebinding, in which the name of another site resolves to this address. A
    token is required unless the address is a loopback address, which only this machine can reach.
    """

    def __init__(self, address: str, port: int, hosts: tuple[str, ...] = ()):
        own = (
            ("127.0.0.1", "localhost", "[::1]") if is_loopback(address) else ("127.0.0.1", "localhost", _host(address))
        )
        self.hosts = frozenset(f"{host.lower()}:{port}" for host in (*own, *hosts))
        self.cookie = f"equipoise-studio-{port}"  # browsers share cookies between ports
        self.token = None if is_loopback(address) else secrets.token_urlsafe(24)

    def check(self, request: RequestHandler) -> str:
        """Return a user name for an allowed request; raise HTTPError 403 for others."""
        if request.request.host.lower() not in self.hosts:
            raise HTTPError(
                403,
                reason="host name not allowed; open the address printed by the studio, or pass this name to serve() in"
                " the argument hosts",
            )
        origin = request.request.headers.get("Origin")
        if origin is not None and urlparse(origin).netloc.lower() not in self.hosts:
            raise HTTPError(
                403, reason="requests from other sites are not allowed; open the address printed by the studio"
            )
        if not _same_site(request):
            raise HTTPError(
                403,
                reason="other sites may not embed the studio or link to its files; open the address printed by the"
                " studio",
            )
        if self.token is None:
            return "local"
        given = request.get_query_argument("token", None) or request.get_cookie(self.cookie) or ""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise HTTPError(403, reason="missing or wrong token; open the address printed by the studio")
        if request.get_cookie(self.cookie) != self.token and request.request.headers.get("Upgrade") is None:
            request.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict")
        return "bearer"


def _same_site(request: RequestHandler) -> bool:
    """Return whether a request comes from the studio, from outside a browser, or from a user who opened the page.

    Users open the page by its address or by a link on another site. Browsers send no Origin header when another site
    loads a script, image or frame of the studio. They do send Sec-Fetch headers, which are checked.
    """
    headers = request.request.headers
    if headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
        return True
    followed = (headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")) == ("navigate", "document")
    return followed and request.request.method == "GET" and request.request.path == "/"


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def make_auth_provider(guard: Guard, pages: Collection[str], limit: int) -> Any:
    """Return a Bokeh AuthProvider that checks each request with the guard and limits the number of open pages.

    Bokeh calls the provider before it sends a page or a script, and before it opens a websocket.

    Parameters
    ----------
    guard : Guard
    pages : collection of str
        Ids of the open pages.
    limit : int
        Maximum number of open pages.
    """
    from bokeh.server.auth_provider import AuthProvider

    class Provider(AuthProvider):  # type: ignore[misc]
        endpoints = ()
        get_login_url = None
        get_user = None
        login_handler = None
        login_url = "/"
        logout_handler = None
        logout_url = None

        @property
        def get_user_async(self) -> Any:
            """The check as a coroutine: Bokeh calls it before opening a websocket, but `get_user` only afterwards."""

            async def check(request: RequestHandler) -> str:
                user = guard.check(request)
                if len(pages) >= limit and _opens_page(request, pages):
                    reason = f"the number of open pages has reached its maximum, {limit}; close one and try again"
                    raise HTTPError(503, reason=reason)
                return user

            return check

    return Provider()


def _opens_page(request: RequestHandler, pages: Collection[str]) -> bool:
    """Return whether a request would create a page; opening a websocket does so if its page has been closed."""
    from bokeh.util.token import get_session_id

    if request.request.path != "/ws":
        return request.request.path in ("/", "/autoload.js")
    token = request.request.headers.get("Sec-WebSocket-Protocol", "").rpartition(",")[2].strip()
    try:
        return get_session_id(token) not in pages
    except Exception:  # a forged token, which Bokeh rejects
        return True

"""Who may talk to a studio: its own page at its own address, with the token where one is needed."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from typing import Any
from urllib.parse import urlparse

from tornado.web import HTTPError, RequestHandler


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach an address."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class Guard:
    """Hosts a request may be for, origins it may come from, and the token it must carry beyond this machine.

    The name in the Host header is checked too: a foreign site whose name is made to lead here keeps its own.
    """

    def __init__(self, address: str, port: int, hosts: tuple[str, ...] = ()):
        own = (
            ("127.0.0.1", "localhost", "[::1]") if is_loopback(address) else ("127.0.0.1", "localhost", _host(address))
        )
        self.hosts = frozenset(f"{host.lower()}:{port}" for host in (*own, *hosts))
        self.cookie = f"equipoise-studio-{port}"  # browsers share cookies between the ports of a host
        self.token = None if is_loopback(address) else secrets.token_urlsafe(24)

    def check(self, request: RequestHandler) -> str:
        """Return a name for the user of a request, or raise what refuses it."""
        if request.request.host.lower() not in self.hosts:
            raise HTTPError(403, reason="this studio does not answer to that host name")
        origin = request.request.headers.get("Origin")
        if origin is not None and urlparse(origin).netloc.lower() not in self.hosts:
            raise HTTPError(403, reason="this studio does not answer to other sites")
        if self.token is None:
            return "local"
        given = request.get_query_argument("token", None) or request.get_cookie(self.cookie) or ""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise HTTPError(403, reason="the token of this studio is missing in the address or wrong")
        if request.get_cookie(self.cookie) != self.token and request.request.headers.get("Upgrade") is None:
            request.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict")
        return "bearer"


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def provider(guard: Guard) -> Any:
    """Return the guard as Bokeh asks for it: before every page, script and websocket."""
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
            """Asked before a websocket is opened, too; the other kind is asked after."""

            async def check(request: RequestHandler) -> str:
                return guard.check(request)

            return check

    return Provider()

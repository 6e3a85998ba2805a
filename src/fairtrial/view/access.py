"""Who may ask the server: browsers that know the token, on pages of this server."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

TOKEN_BYTES = 24
HOST_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Sent with every answer; nothing allows other origins to read them."""


@dataclass(frozen=True, slots=True)
class Access:
    """The token of one server, and the checks of requests.

    port: the port of the server
    token: in the address that is printed; whoever has it gets the cookie
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES))
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES))

    @property
    def address(self) -> str:
        """The address to open."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def cookie_name(self) -> str:
        """The cookie's name; browsers don't keep cookies of different ports apart."""
        return f"fairtrial-view-{self.port}"

    @property
    def cookie_header(self) -> str:
        """The value of the header that sets the cookie."""
        return f"{self.cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def is_known_token(self, token: str) -> bool:
        """Return whether a token is the right one."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def is_known_cookie(self, cookie: str) -> bool:
        """Return whether a cookie is the one that the token was exchanged for."""
        return hmac.compare_digest(cookie.encode("utf-8", "replace"), self._cookie.encode())

    def refuse(self, method: str, host: str, origin: str | None, site: str | None) -> str:
        """Return why a request is refused, whatever its cookie; empty if it isn't.

        host, origin, site: its headers `Host`, `Origin` and `Sec-Fetch-Site`
        """
        name, _, port = host.rpartition(":")
        if name.lower() not in HOST_NAMES or port != str(self.port):
            return "this server answers only to its own address on this machine"
        if origin is not None and origin.lower() != f"http://{host}".lower():
            return "requests from pages of other origins are refused"
        if site in ("cross-site", "same-site") and method != "GET":
            return "requests from pages of other origins are refused"
        if method != "GET" and origin is None:
            return "a request that changes something must say where it comes from"
        return ""

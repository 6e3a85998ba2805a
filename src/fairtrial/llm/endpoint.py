"""A chat-completions endpoint: address, key, retries, and the HTTP client for it."""

from __future__ import annotations

import functools
import ipaddress
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fairtrial.core import LabError, on_one_line
from fairtrial.llm.secret import Secret

if TYPE_CHECKING:
    import ssl

    import httpx

MAX_REASON_CHARS = 500
RETRIES_OF_UNREACHED = 1
"""How often an address is tried again that has never been reached: it is probably wrong."""
_reached: set[str] = set()
"""The hosts that this process has been connected to."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of an endpoint, and how requests to it are retried.

    base_url: the address, to which `/chat/completions` is added
    secret: the key
    timeout_s: how long one attempt may take, from the first byte to the last
    retries: how many attempts follow a failed one; see `retries_now`
    backoff_s: the wait before the first retry; it doubles for each further one
    longest_wait_s: the longest wait, even if the server asks for more
    """

    base_url: str
    secret: Secret = field(default_factory=Secret)
    timeout_s: float = 300.0
    retries: int = 4
    backoff_s: float = 1.0
    longest_wait_s: float = 60.0

    @property
    def host(self) -> str:
        """Host and port, by which messages name the endpoint."""
        return urlsplit(self.base_url).netloc

    @property
    def may_use_proxy(self) -> bool:
        """Whether a proxy named in the environment may be used.

        Only for https, since a proxy would see the key in http, and never for this machine.
        """
        parts = urlsplit(self.base_url)
        name = (parts.hostname or "").rstrip(".")
        try:
            is_loopback = ipaddress.ip_address(name).is_loopback
        except ValueError:
            is_loopback = name == "localhost" or name.endswith(".localhost")
        return parts.scheme == "https" and not is_loopback

    def note_attempt(self, *, is_unreached: bool) -> None:
        """Take note of whether an attempt reached the host."""
        if not is_unreached:
            _reached.add(self.host)

    @property
    def retries_now(self) -> int:
        """How many attempts may follow a failed one: few for a host that was never reached."""
        if self.host in _reached:
            return self.retries
        return min(self.retries, RETRIES_OF_UNREACHED)

    def wait_before(self, retry: int, asked_s: float | None, rng: random.Random) -> float:
        """Return how many seconds to wait before a retry.

        At least as long as the server asks, but at most `longest_wait_s`; partly random, so that
        clients that were refused together don't return together.

        retry: the number of the retry, from 0
        asked_s: the wait that the server asks for
        """
        doubled = self.backoff_s * 2.0 ** min(retry, 30)
        if asked_s is None:
            return min(doubled, self.longest_wait_s) * rng.uniform(0.5, 1.0)
        return min(asked_s + rng.uniform(0.0, 0.5) * self.backoff_s, self.longest_wait_s)


def open_client(endpoint: Endpoint) -> httpx.AsyncClient:
    """Return the HTTP client for an endpoint.

    Raises `LabError` if environment variables for certificates or proxies can't be used.
    """
    import httpx

    host, variables = endpoint.host, "SSL_CERT_FILE, SSL_CERT_DIR"
    try:
        certificates = _load_certificates()
        variables = "HTTPS_PROXY, ALL_PROXY, NO_PROXY"
        return httpx.AsyncClient(
            verify=certificates,
            timeout=endpoint.timeout_s,
            follow_redirects=False,
            trust_env=endpoint.may_use_proxy,
        )
    # httpx raises exceptions of many types for wrong values of these variables.
    except Exception as error:
        # A proxy's address may hold a password.
        text = "" if "@" in str(error) else on_one_line(str(error), MAX_REASON_CHARS)
        reason = f"{type(error).__name__}: {text}".removesuffix(": ")
        raise LabError(
            f"{host} can't be asked: what the environment says can't be used ({reason}); "
            f"look at {variables}"
        ) from None


@functools.cache
def _load_certificates() -> ssl.SSLContext:
    """Load the trusted certificates; cached, since it takes as long as a short request."""
    import httpx

    return httpx.create_ssl_context()

"""Where questions go, and through what: the address, the key, who may stand between."""

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

LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where questions go, and how long we try.

    base_url: the address, to which `/chat/completions` is added
    secret: the key
    timeout_s: how long one attempt may take, from the first byte to the last
    retries: how many further attempts there are
    backoff_s: the wait before the first of them; it doubles each time
    longest_wait_s: the longest wait, whatever the server asks for
    """

    base_url: str
    secret: Secret = field(default_factory=Secret)
    timeout_s: float = 300.0
    retries: int = 4
    backoff_s: float = 1.0
    longest_wait_s: float = 60.0

    @property
    def host(self) -> str:
        """What messages call it."""
        return urlsplit(self.base_url).netloc

    @property
    def may_use_proxy(self) -> bool:
        """Whether a proxy that the environment names may stand between.

        Of https it sees where to, and no more; of http it would see the key. Nobody stands between
        us and this machine.
        """
        parts = urlsplit(self.base_url)
        name = (parts.hostname or "").rstrip(".")
        try:
            is_here = ipaddress.ip_address(name).is_loopback
        except ValueError:
            is_here = name == "localhost" or name.endswith(".localhost")
        return parts.scheme == "https" and not is_here

    def wait_before(self, retry: int, asked_s: float | None, rng: random.Random) -> float:
        """How long to wait before a retry, the first being 0.

        Never shorter than the server asks, unless that is longer than we wait at all; spread, so
        that many who were turned away together don't come back together.
        """
        doubled = self.backoff_s * 2.0 ** min(retry, 30)
        if asked_s is None:
            return min(doubled, self.longest_wait_s) * rng.uniform(0.5, 1.0)
        return min(asked_s + rng.uniform(0.0, 0.5) * self.backoff_s, self.longest_wait_s)


def open_client(endpoint: Endpoint) -> httpx.AsyncClient:
    """What requests go through; raises `LabError` where the environment makes that impossible."""
    import httpx

    host, names = endpoint.host, "SSL_CERT_FILE, SSL_CERT_DIR"
    try:
        trusted = _trusted()
        names = "HTTPS_PROXY, ALL_PROXY, NO_PROXY"
        return httpx.AsyncClient(
            verify=trusted,
            timeout=endpoint.timeout_s,
            follow_redirects=False,
            trust_env=endpoint.may_use_proxy,
        )
    # Whatever else it may raise comes of the same variables.
    except Exception as error:
        # The address of a proxy may hold a password.
        reason = "" if "@" in str(error) else on_one_line(str(error), LONGEST_REASON)
        why = f"{type(error).__name__}: {reason}".removesuffix(": ")
        raise LabError(
            f"{host} can't be asked: what the environment says can't be used ({why}); "
            f"look at {names}"
        ) from None


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Whose certificates count: read once, which takes as long as a short question."""
    import httpx

    return httpx.create_ssl_context()

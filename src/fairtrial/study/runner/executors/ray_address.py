"""The address of a Ray cluster: whether it can be one, and whether Ray answers there.

Ray itself waits for minutes for an address at which nothing answers, and logs meanwhile.
"""

from __future__ import annotations

import os
import socket
from ipaddress import ip_address

AUTO = "auto"
FORMS = "give `auto`, or HOST:PORT of the head node (`ray start --head` prints it)"
ANSWER_S = 5.0
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The start of a conversation over HTTP/2, which Ray's services speak, with empty settings."""
_SETTINGS_TYPE = 4


def find_address_mistake(address: str) -> str | None:
    """Return what is wrong with the form of an address, or None."""
    if address == AUTO:
        return None
    if "://" in address:
        return f"{address} is no address of a head node (Ray Client is not supported)"
    host, separator, port = address.rpartition(":")
    if not (host and separator and port.isdecimal() and 0 < int(port) < 2**16):
        return f"{address or 'an empty text'} is no address of a cluster"
    return None


def find_silence(address: str, limit_s: float = ANSWER_S) -> str | None:
    """Return why Ray doesn't answer at `host:port`, or None if it seems to.

    limit_s: how long to wait for a connection, and how long for an answer
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), limit_s) as connection:
            if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
                return None  # Ray itself has the keys to talk to it
            connection.sendall(_HELLO)
            answer = b""
            while len(answer) < 4 and (data := connection.recv(9)):
                answer += data
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return error.strerror or str(error)
    return None if answer[3:4] == bytes((_SETTINGS_TYPE,)) else "what answers there is not Ray"


def is_same_place(address: str, joined: str) -> bool:
    """Return whether two addresses `host:port` are the same; `joined` is one of this network."""
    (host, _, port), (joined_host, _, joined_port) = (
        text.rpartition(":") for text in (address, joined)
    )
    if port != joined_port:
        return False
    places, known = _resolve(host), _resolve(joined_host)
    return bool(places & known) or any(ip_address(place).is_loopback for place in places)


def _resolve(host: str) -> set[str]:
    """Return the network addresses of a host; none if it has no known ones."""
    try:
        entries = socket.getaddrinfo(host.strip("[]"), None)
    except OSError:
        return set()
    return {str(entry[4][0]).partition("%")[0] for entry in entries}

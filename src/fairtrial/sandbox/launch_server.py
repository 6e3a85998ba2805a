"""Init processes forked from a launch server (`fairtrial.sandbox.harness.launch_server`).

The server is a Python that has loaded the harness, so that commands don't wait for the start of
one. This process starts it with the first command that can use it, and it ends with this process.
"""

from __future__ import annotations

import atexit
import marshal
import os
import socket
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fairtrial.sandbox.commands import CHANNEL_VARIABLE
from fairtrial.sandbox.descriptors import Descriptors
from fairtrial.sandbox.init_process import InitDescriptors, NotStartedError
from fairtrial.sandbox.system import HARNESS, own_python

_END_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class _LaunchServer:
    process: subprocess.Popen[bytes]
    control: socket.socket


_guard = threading.Lock()
_server: _LaunchServer | None = None


async def start_by_server(orders: dict[str, Any], passed: InitDescriptors) -> None:
    """Let the launch server fork the init process; for sandboxes that it enters by a mount plan.

    Raises `NotStartedError` if there is no server, or it has ended.
    """
    import anyio

    with Descriptors() as descriptors:
        sent = [passed.stdin, passed.stdout, passed.stderr, passed.report, passed.life]
        sent.append(passed.ended)
        numbers: dict[str, Any] = {"report": 4, "life": 5, "ended": 6}
        numbers |= {"usage": None, "channel": None}
        if passed.channel is not None:
            sent.append(passed.channel)
            numbers["channel"] = len(sent)
        if passed.usage is not None:
            sent.append(descriptors.open(passed.usage, os.O_RDONLY))
            numbers["usage"] = len(sent)
        numbers["joins"] = [len(sent) + place for place in range(1, len(passed.joins) + 1)]
        sent += [descriptors.open(join, os.O_WRONLY) for join in passed.joins]
        numbers["channel_variable"] = CHANNEL_VARIABLE
        order_file = descriptors.make_file(marshal.dumps({**orders, **numbers}))
        control = _find_server().control
        while True:
            try:
                socket.send_fds(control, [b"1"], [order_file, *sent])
                return
            except BlockingIOError:
                await anyio.wait_writable(control)
            except OSError as error:
                raise NotStartedError(f"the launch server is gone: {error}") from error


def forget_server() -> None:
    """End the launch server, so that the next command starts another one."""
    global _server
    with _guard:
        server, _server = _server, None
    if server is not None:
        server.control.close()
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(_END_TIMEOUT_S)


def _find_server() -> _LaunchServer:
    global _server
    with _guard:
        if _server is None or _server.process.poll() is not None:
            if _server is not None:
                _server.control.close()
            _server = _start_server()
        return _server


def _start_server() -> _LaunchServer:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        process = subprocess.Popen(
            [own_python(), "-I", "-S", str(HARNESS / "launch_server.py"), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise NotStartedError(f"the launch server could not be started: {error}") from error
    finally:
        theirs.close()
    ours.setblocking(False)
    return _LaunchServer(process, ours)


def _forget_in_child() -> None:
    """In a forked child: the server is its parent's."""
    global _guard, _server
    _guard = threading.Lock()
    if _server is not None:
        _server.control.close()
        _server.process.returncode = 0  # not a child of this process
        _server = None


os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(forget_server)

"""The launch server: forks an init process for each command, which saves the start of a Python.

It runs outside of every sandbox, loads nothing but the harness, and never runs a command itself.
Each fork enters its own namespaces before it reads any file.

Run as ``python -I -S launch_server.py DESCRIPTOR``: each message on the socket of that number comes
with descriptors, the first of which holds the orders, as `fairtrial.sandbox.launch_server` writes
them. Linux only.
"""

import array
import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from typing import Any, Dict, List, NoReturn
else:
    import _signal as signal  # `signal` and `socket` add enum only, which every fork would hold
    import _socket as socket

_package = type(sys)("_fairtrial_harness")
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package

from _fairtrial_harness import (  # type: ignore[import-not-found]  # noqa: E402
    group_joining,
    init,
    launch,
    namespaces,
)

MAX_DESCRIPTORS = 24


def main() -> "NoReturn":
    """Fork init processes until the socket is closed."""
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # let the kernel reap the forks
    while True:
        descriptors = receive(control)
        if not descriptors:
            os._exit(0)
        try:
            pid = os.fork()
        except OSError as error:
            os.write(descriptors[3], f"no process can be forked: {error.strerror}\n".encode())
            pid = -1
        if pid == 0:
            run_order(control, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def receive(control: "socket.socket") -> "List[int]":
    """Return the descriptors of the next message; none when the socket is closed."""
    integers = array.array("i")
    space = socket.CMSG_SPACE(MAX_DESCRIPTORS * integers.itemsize)
    try:
        _, ancillary, _, _ = control.recvmsg(1, space, socket.MSG_CMSG_CLOEXEC)
    except OSError:
        return []
    for level, kind, raw in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            integers.frombytes(raw[: len(raw) - len(raw) % integers.itemsize])
    return list(integers)


def run_order(control: "socket.socket", descriptors: "List[int]") -> "NoReturn":
    """In the forked process: run a command under supervision, and exit."""
    try:
        control.close()
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for number in range(3):
            os.dup2(descriptors[number + 1], number)
            os.close(descriptors[number + 1])
        with open(descriptors[0], "rb") as file:
            orders: Dict[str, Any] = marshal.load(file)
        take_descriptors(orders, descriptors)
        joiner = group_joining.start_joining(orders["joins"])
        namespaces.enter(orders["plan"], joiner, held=orders["ended"])
        launch.run(init, orders)
    except BaseException as error:
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(1)


def take_descriptors(orders: "Dict[str, Any]", descriptors: "List[int]") -> None:
    """Replace positions in the message by the descriptors that came with it."""
    for name in ("report", "life", "ended", "usage", "channel"):
        if orders[name] is not None:
            orders[name] = descriptors[orders[name]]
    orders["joins"] = [descriptors[position] for position in orders["joins"]]
    if orders["channel"] is not None:
        os.set_inheritable(orders["channel"], True)
        orders["env"][orders["channel_variable"]] = str(orders["channel"])


if __name__ == "__main__":
    main()

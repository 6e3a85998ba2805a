"""The warm server: imports third-party packages once, then forks a process for each command.

It runs outside of every sandbox and never sees a file of a candidate or of the project. Each fork
enters namespaces, limits and a temp folder of its own before it looks at anything; what it does to
its memory is gone when it ends. The next one is forked from here, not from it.

Run as ``python warm.py DESCRIPTOR``: what to import comes as JSON on standard input, commands come
as JSON with their descriptors on the socket of that number. Linux only.
"""

from __future__ import annotations

import array
import importlib
import json
import os
import signal
import socket
import sys
from typing import Any, Iterable, NoReturn, Sequence

_HERE = os.path.dirname(os.path.abspath(__file__))
_package = type(sys)("_fairtrial_harness")
_package.__path__ = [_HERE]  # a name that nobody else has; nothing of ours goes on sys.path
sys.modules["_fairtrial_harness"] = _package

from _fairtrial_harness import (  # type: ignore[import-not-found]  # noqa: E402
    init,
    kernel,
    namespaces,
    warm_entry,
)

LARGEST_ORDER = 1 << 20
MOST_DESCRIPTORS = 8
STREAMS = ("stdin", "stdout", "stderr", "report", "life", "channel")
"""The descriptors that come with an order, in this order; the channel only if there is one."""


def main() -> NoReturn:
    # `control` tells as well when nobody needs us any more; but not while we import.
    kernel.die_with_parent(signal.SIGKILL)
    sys.path = [folder for folder in sys.path if folder not in ("", _HERE)]
    control = socket.socket(fileno=int(sys.argv[1]))
    with open(0, "rb", closefd=False) as told:  # sys.stdin stays as new, for the commands
        orders = json.load(told)
    folders = [folder + os.sep for folder in orders["folders"]]
    result = prepare(orders["files"], set(orders["never"]), folders)
    control.send(json.dumps(result).encode())
    warm_entry.settle()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps: nobody here asks for them
    while True:
        order, descriptors = receive(control)
        if order is None:
            os._exit(0)
        if os.fork() == 0:
            serve(control, order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def prepare(files: Iterable[str], never: set[str], folders: Sequence[str]) -> dict[str, Any]:
    """Import what lies at these files; tells how many there were, and which one is a hindrance.

    A process with several threads can't be forked safely, and one that holds a module of the
    project, which others may import, too, would run that instead of a candidate's. The name of the
    module that brought it about is told, so that the next server can do without it; no name means
    that none can.
    """
    found = sorted(filter(None, (name_of(file) for file in files)))
    names = [name for name in found if name.partition(".")[0] not in never]
    known = set(sys.modules)
    if any(name.partition(".")[0] in never for name in known - {"__main__"}):
        return {"imported": 0, "hindrance": ""}  # an environment's start-up files brought it along
    imported = 0
    for name in names:
        try:
            importlib.import_module(name)
            imported += 1
        except BaseException:  # the command itself will meet it, if it comes to that
            pass
        new = sys.modules.keys() - known
        known |= new
        if len(os.listdir("/proc/self/task")) > 1 or holds_foreign(new, never, folders):
            return {"imported": imported, "hindrance": name}
    return {"imported": imported, "hindrance": None}


def holds_foreign(names: Iterable[str], never: set[str], folders: Sequence[str]) -> bool:
    """Whether a module is one that must not be here, or comes from where commands don't look."""
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        is_known = not isinstance(file, str) or any(file.startswith(each) for each in folders)
        if name.partition(".")[0] in never or not is_known:
            return True
    return False


def name_of(file: str) -> str | None:
    """The module that a file is, by where it lies on the path; None if it is none that we want."""
    for folder in sorted(sys.path, key=len, reverse=True):
        if folder and file.startswith(folder + os.sep):
            parts = file[len(folder) + 1 :].split(os.sep)
            parts[-1] = parts[-1].partition(".")[0]
            if parts[-1] == "__init__":
                parts.pop()
            name = ".".join(parts)
            is_name = all(part.isidentifier() for part in parts)
            return name if name and is_name and parts[-1] != "__main__" else None
    return None


def receive(control: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next order and its descriptors; None when nobody is there any more."""
    room = socket.CMSG_SPACE(MOST_DESCRIPTORS * array.array("i").itemsize)
    while True:
        try:
            data, ancillary, _, _ = control.recvmsg(LARGEST_ORDER, room, socket.MSG_CMSG_CLOEXEC)
            break
        except InterruptedError:
            continue
        except OSError:
            return None, []
    descriptors: array.array[int] = array.array("i")
    for level, kind, raw in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(raw[: len(raw) - len(raw) % descriptors.itemsize])
    return (json.loads(data) if data else None), list(descriptors)


def serve(control: socket.socket, order: dict[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """The forked process: never returns to the server's loop."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for file in order["joins"]:
            with open(file, "w") as group:
                group.write("0")
        control.close()
        named = dict(zip(STREAMS, descriptors))
        for number, name in enumerate(STREAMS[:3]):
            os.dup2(named[name], number)
        if order["plan"]:
            namespaces.enter(order["plan"])
        init.supervise(
            warm_entry.entry(order, named.get("channel")),
            order["limits"],
            report=named["report"],
            life=named["life"],
            is_first=bool(order["plan"]),
            private=order["private"],
            close=[named[name] for name in STREAMS[:3]],
        )
        code = 0
    except BaseException as error:
        os.write(2, f"the warm process could not start: {error!r}\n".encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()

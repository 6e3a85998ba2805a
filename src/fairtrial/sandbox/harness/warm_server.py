"""The warm server: imports third-party packages once, then forks a process for each command.

It runs outside of every sandbox and never sees a file of a candidate or of the project. Each fork
gets its own namespaces, limits and temporary folder before it reads any file. Changes to its memory
don't affect later commands, which are forked from the server.

Run as ``python warm_server.py DESCRIPTOR``: the modules to import come as JSON on standard input,
commands as JSON with their descriptors on the socket of that number. Linux only.
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

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_package = type(sys)("_fairtrial_harness")
_package.__path__ = [_FOLDER]  # unique, so that the folder need not be on sys.path
sys.modules["_fairtrial_harness"] = _package

from _fairtrial_harness import (  # type: ignore[import-not-found]  # noqa: E402
    group_joining,
    init,
    kernel,
    namespaces,
    warm_entry,
)

MAX_ORDER_BYTES = 1 << 20
MAX_DESCRIPTORS = 8
STREAMS = ("stdin", "stdout", "stderr", "report", "life", "ended", "channel")
"""The descriptors that come with an order, in this sequence; the channel only if there is one."""


def main() -> NoReturn:
    """Import modules, then fork commands until the socket is closed."""
    # The end of `control` isn't noticed during imports.
    kernel.die_with_parent(signal.SIGKILL)
    sys.path = [folder for folder in sys.path if folder not in ("", _FOLDER)]
    control = socket.socket(fileno=int(sys.argv[1]))
    with open(0, "rb", closefd=False) as stdin:  # sys.stdin stays unused, for the commands
        orders = json.load(stdin)
    folders = [folder + os.sep for folder in orders["folders"]]
    result = import_modules(orders["files"], set(orders["never"]), folders)
    control.send(json.dumps(result).encode())
    warm_entry.prepare_for_forks()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # let the kernel reap the forks
    while True:
        order, descriptors = receive(control)
        if order is None:
            os._exit(0)
        if os.fork() == 0:
            run_order(control, order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def import_modules(files: Iterable[str], never: set[str], folders: Sequence[str]) -> dict[str, Any]:
    """Import the modules of these files.

    Returns how many were `imported`, and as `hindrance` the module after which commands can't be
    forked any more (None if they can), so that the next server can leave it out. An empty name
    means that no server can fork. Forking is unsafe with several threads, and wrong if a module of
    the project was imported, which commands would use instead of the candidate's.
    """
    all_names = sorted(filter(None, (find_module_name(file) for file in files)))
    names = [name for name in all_names if name.partition(".")[0] not in never]
    loaded = set(sys.modules)
    if any(name.partition(".")[0] in never for name in loaded - {"__main__"}):
        return {"imported": 0, "hindrance": ""}  # imported by the environment's start-up files
    imported = 0
    for name in names:
        try:
            importlib.import_module(name)
            imported += 1
        except BaseException:  # a command that imports it will report the error
            pass
        new = sys.modules.keys() - loaded
        loaded |= new
        if len(os.listdir("/proc/self/task")) > 1 or has_unwanted_module(new, never, folders):
            return {"imported": imported, "hindrance": name}
    return {"imported": imported, "hindrance": None}


def has_unwanted_module(names: Iterable[str], never: set[str], folders: Sequence[str]) -> bool:
    """Return whether a module is forbidden, or is not from one of the allowed folders."""
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        is_allowed = not isinstance(file, str) or any(file.startswith(path) for path in folders)
        if name.partition(".")[0] in never or not is_allowed:
            return True
    return False


def find_module_name(file: str) -> str | None:
    """Return the module name of a file, by sys.path; None if it can't be imported by name."""
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
    """Return the next order and its descriptors; None when the socket is closed."""
    space = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
    while True:
        try:
            data, ancillary, _, _ = control.recvmsg(MAX_ORDER_BYTES, space, socket.MSG_CMSG_CLOEXEC)
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


def run_order(
    control: socket.socket, order: dict[str, Any], descriptors: Sequence[int]
) -> NoReturn:
    """In the forked process: run a command under supervision, and exit."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        control.close()
        joins = [os.open(file, os.O_WRONLY | os.O_CLOEXEC) for file in order["joins"]]
        usage = os.open(order["usage"], os.O_RDONLY | os.O_CLOEXEC) if order["usage"] else None
        streams = dict(zip(STREAMS, descriptors))
        for number, name in enumerate(STREAMS[:3]):
            os.dup2(streams[name], number)
        joiner = group_joining.start_joining(joins)
        namespaces.enter(order["plan"], joiner, held=streams["ended"])
        init.supervise(
            warm_entry.make_start(order, streams.get("channel")),
            order["limits"],
            report=streams["report"],
            life=streams["life"],
            is_first=True,
            private=order["private"],
            close=[streams[name] for name in STREAMS[:3]],
            cores=order["cores"],
            usage=usage,
        )
        code = 0
    except BaseException as error:
        os.write(2, f"the warm process could not start: {error!r}\n".encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()

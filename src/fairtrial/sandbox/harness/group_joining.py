"""Joining of control groups while other work goes on, since the kernel takes its time for it."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing takes longer to import than many commands to run
if TYPE_CHECKING:
    from typing import Sequence

_FAILURE = "the control group can't be joined"
_DONE = b"1"


class Joiner:
    """A process that moves another one into control groups; made by `start_joining`.

    It stays outside of namespaces that its parent enters later, so it sees the groups and all pids.
    """

    def __init__(self, pid: int, orders: int, result: int) -> None:
        self._pid, self._orders, self._result = pid, orders, result

    def join(self, pid: int) -> None:
        """Begin to move a process; `pid` is its number outside of the namespaces."""
        os.write(self._orders, str(pid).encode())

    def reap(self) -> None:
        """Wait for the end of the joiner; in the process that has started it."""
        os.waitpid(self._pid, 0)

    def wait(self) -> None:
        """Wait until the process was moved; raises `OSError` if it could not be."""
        os.close(self._orders)
        await_joined(self._result)

    def finish(self) -> None:
        """Wait until the process was moved and the joiner has ended; raises `OSError`, too."""
        self.reap()
        self.wait()


def start_joining(groups: Sequence[int]) -> Joiner | None:
    """Fork a joiner for these groups, and close their descriptors; None if there are no groups.

    groups: descriptors of the groups' files cgroup.procs
    """
    if not groups:
        return None
    orders, result = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(orders[1])
            target = os.read(orders[0], 32)
            for group in groups if target else ():
                os.write(group, target)
            if target:
                os.write(result[1], _DONE)
            os._exit(0)
        finally:
            os._exit(1)
    for descriptor in (*groups, orders[0], result[1]):
        os.close(descriptor)
    return Joiner(pid, orders[1], result[0])


def await_joined(descriptor: int) -> None:
    """Wait for the message that this process was moved; raises `OSError` if it could not be."""
    is_done = os.read(descriptor, 1) == _DONE
    os.close(descriptor)
    if not is_done:
        raise OSError(_FAILURE)

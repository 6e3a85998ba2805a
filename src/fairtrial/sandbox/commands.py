"""A command that is run for somebody: what it may see and use, and what came of it.

Plain frozen dataclasses: only fairtrial makes them. `Limits` is a record, since users write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from fairtrial.core import Mistake, Record

CHANNEL_VARIABLE = "FAIRTRIAL_CHANNEL"
"""Names the variable that holds the number of the descriptor a command reports on."""


@dataclass(frozen=True, slots=True)
class Limits(Record):
    """How much of the machine a command and all that it starts may use together.

    memory_mb: resident memory
    processes: processes that exist at the same time
    file_mb: the largest file that may be written
    network: whether there is one
    """

    memory_mb: int = 2048
    processes: int = 64
    file_mb: int = 1024
    network: bool = False

    def _mistakes(self) -> Iterator[Mistake]:
        for name in ("memory_mb", "processes", "file_mb"):
            if getattr(self, name) < 1:
                yield Mistake((name,), f"must be 1 or more, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder and where a command sees it.

    source: where it is on this machine
    target: where the command sees it; the plain sandbox can't move anything and wants them equal
    """

    source: Path
    target: Path


@dataclass(frozen=True, slots=True)
class View:
    """What a command sees of the machine beside the system's own programs and libraries.

    Later mounts lie over earlier ones: first all of `readable`, then all of `writable`, then
    `over`. Temp and home are always new, empty and private to the command.

    readable: what it may read
    writable: what it may change
    over: read-only mounts that lie inside a writable one (a virtual environment, included data)
    """

    readable: tuple[Mount, ...] = ()
    writable: tuple[Mount, ...] = ()
    over: tuple[Mount, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, and within which bounds.

    argv: the program and its arguments
    cwd: the folder it starts in, as it sees it
    env: its whole environment but for what the sandbox sets (HOME, TMPDIR)
    view: what it sees
    limits: what it may use
    timeout_s: how much CPU time, and how long a time in which it could have run, it may take;
        waiting for a core that others use doesn't count, up to four times as long
    stdin: what it reads
    channel_bytes: how much it may report on the channel; 0 for no channel. The number of the
        descriptor is in the variable FAIRTRIAL_CHANNEL
    output_bytes: how much is kept of its output and of its error output, each: head and tail
    line: a descriptor that the command gets as its channel, for somebody who talks with it while it
        runs: the other end of a socket of theirs
    cores: the cores that it may use; our own processes around it keep away from them if they can
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    view: View = View()
    limits: Limits = Limits()
    timeout_s: float = 120.0
    stdin: bytes = b""
    channel_bytes: int = 0
    output_bytes: int = 64 * 1024
    line: int | None = None
    cores: tuple[int, ...] = ()

    @property
    def talks(self) -> bool:
        """Whether it has a channel."""
        return self.channel_bytes > 0 or self.line is not None


class Ending(StrEnum):
    """How a command came to its end."""

    EXITED = "exited"
    """by itself; `exit_code` says how"""
    SIGNALLED = "signalled"
    """by a signal that nobody of ours sent"""
    TIMEOUT = "timeout"
    """we stopped it: too long, in CPU or in wall time"""
    MEMORY = "memory"
    """we or the kernel stopped it: too much memory"""
    PROCESSES = "processes"
    """we stopped it: too many processes"""


@dataclass(frozen=True, slots=True)
class Captured:
    """What was written to a stream: all of it, or its head and tail.

    head: the beginning
    tail: the end, if something is missing between the two
    dropped: how many bytes are missing
    """

    head: bytes = b""
    tail: bytes = b""
    dropped: int = 0

    @property
    def text(self) -> str:
        """For people: undecodable bytes are replaced, what is missing is said."""
        gap = f"\n... {self.dropped:,} bytes left out ...\n".encode() if self.dropped else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Completed:
    """What came of a command; made when none of its processes is left.

    ending: how it ended
    exit_code: what it exited with; None if it didn't exit
    signal: what it died of; None if it didn't die of a signal
    stdout: its output
    stderr: its error output
    channel: what it reported
    channel_overflowed: whether it tried to report more than it may
    wall_s: how long it took
    cpu_s: CPU time of all its processes
    peak_rss_mb: the most memory that they held together, as far as it was seen
    """

    ending: Ending
    exit_code: int | None
    signal: int | None
    stdout: Captured
    stderr: Captured
    channel: bytes
    channel_overflowed: bool
    wall_s: float
    cpu_s: float
    peak_rss_mb: float

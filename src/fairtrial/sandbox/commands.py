"""Commands for a sandbox, and their results.

Plain frozen dataclasses, which only fairtrial makes. `Limits` is a record, since users write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from fairtrial.core import Mistake, Record

CHANNEL_VARIABLE = "FAIRTRIAL_CHANNEL"
"""The environment variable with the number of the descriptor that a command reports on."""


@dataclass(frozen=True, slots=True)
class Limits(Record):
    """Limits of a command and all processes that it starts, together.

    memory_mb: resident memory
    processes: number of processes at the same time
    file_mb: size of the largest file that may be written
    network: whether the network may be used
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
    """A file or folder, and the path at which a command sees it.

    source: its path on this machine
    target: its path for the command; must equal `source` in the plain sandbox
    """

    source: Path
    target: Path


@dataclass(frozen=True, slots=True)
class View:
    """The files that a command sees beside the system's own programs and libraries.

    Later mounts cover earlier ones: first all of `readable`, then all of `writable`, then `over`.
    The temporary and the home folder are always new, empty and private to the command.

    readable: read-only mounts
    writable: writable mounts
    over: read-only mounts inside a writable one (a virtual environment, included data)
    """

    readable: tuple[Mount, ...] = ()
    writable: tuple[Mount, ...] = ()
    over: tuple[Mount, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run, with its limits.

    argv: the program and its arguments
    cwd: the folder in which it starts, as the command sees it
    env: its whole environment, except variables that the sandbox sets (HOME, TMPDIR)
    view: the files that it sees
    limits: the resources that it may use
    timeout_s: limit of its CPU time, and of its wall time without waits for a busy core; wall time
        with such waits may be four times as long
    stdin: its standard input
    channel_bytes: how much it may report on the channel; 0 for no channel. The variable
        FAIRTRIAL_CHANNEL holds the descriptor's number
    output_bytes: how much of its output and of its error output is kept, head and tail
    channel_fd: a descriptor that the command gets as its channel, such as one end of a socket by
        which its caller communicates with it while it runs
    cores: the cores that it may use; processes that supervise it avoid them if there are others
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
    channel_fd: int | None = None
    cores: tuple[int, ...] = ()

    @property
    def has_channel(self) -> bool:
        """Whether the command can report."""
        return self.channel_bytes > 0 or self.channel_fd is not None


class Ending(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    """it exited; see `exit_code`"""
    SIGNALLED = "signalled"
    """a signal killed it that fairtrial did not send"""
    TIMEOUT = "timeout"
    """stopped for too much CPU or wall time"""
    MEMORY = "memory"
    """stopped, by fairtrial or the kernel, for too much memory"""
    PROCESSES = "processes"
    """stopped for too many processes"""


@dataclass(frozen=True, slots=True)
class Captured:
    """The output of a stream: all of it, or its head and tail.

    head: the beginning
    tail: the end, if bytes between the two were dropped
    dropped: how many bytes were dropped
    """

    head: bytes = b""
    tail: bytes = b""
    dropped: int = 0

    @property
    def text(self) -> str:
        """The output as text, with undecodable bytes replaced and a note for dropped bytes."""
        gap = f"\n... {self.dropped:,} bytes left out ...\n".encode() if self.dropped else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a command, after all of its processes have ended.

    ending: how it ended
    exit_code: its exit code; None if it didn't exit
    signal: the signal that killed it; None if none did
    stdout: its output
    stderr: its error output
    channel: its report
    channel_overflowed: whether it tried to report more than `channel_bytes`
    wall_s: wall time
    cpu_s: CPU time of all its processes
    peak_rss_mb: the most memory that its processes held together, as far as observed
    counts_all_cpu: whether `cpu_s` includes processes that were never waited for
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
    counts_all_cpu: bool = False

"""Control groups: limits for a whole tree of processes that the kernel holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairtrial.model.commands import Ending, Limits


@dataclass(frozen=True, slots=True)
class Group:
    """One command's control group.

    joins: files into which the command's first process writes "0" before it does anything else
    """

    joins: tuple[Path, ...]

    def exceeded(self) -> Ending | None:
        """Which limit the kernel had to enforce, if any."""
        return None

    def peak_rss_mb(self) -> float:
        """The most memory that was held at once; 0 where the kernel doesn't tell."""
        return 0.0


@contextmanager
def limiting(limits: Limits) -> Iterator[Group | None]:
    """A group with these limits for one command, removed afterwards; None where there can't be."""
    yield None

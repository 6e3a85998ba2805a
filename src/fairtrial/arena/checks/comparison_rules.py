"""Rules of comparing reports, and limits of the work: reports come from untrusted processes."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field

MOST_STEPS = 20_000_000
"""How many pairs of values one comparison of a report may look at."""
MOST_CPU_S = 30.0
"""How much CPU time of its thread one comparison of a report may take."""
SPARE_BYTES = 4 * 2**20
"""How much longer than twice the expected report a report may be."""
_STEPS_BETWEEN_CLOCKS = 256
STOPPING: ContextVar[threading.Event | None] = ContextVar("stopping", default=None)
"""Is set when nobody waits any longer for the comparisons that are made in this context."""


class ComparisonLimitError(Exception):
    """A comparison takes too long; the message says so."""


@dataclass(slots=True)
class ComparisonBudget:
    """The work that may still be spent on comparing one report.

    CPU time of the thread is counted, not wall time: other programs must not change a verdict.

    steps: how many pairs of values may still be looked at
    cpu_s: how much CPU time may be spent in all
    stopping: ends comparisons when it is set
    """

    steps: int = MOST_STEPS
    cpu_s: float = MOST_CPU_S
    stopping: threading.Event | None = field(default_factory=STOPPING.get)
    _began_s: float | None = None
    _until_clock: int = 0

    def spend(self, steps: int = 1) -> None:
        """Count steps; raise `ComparisonLimitError` if the budget is used up."""
        self.steps -= steps
        self._until_clock -= steps
        if self._until_clock > 0:
            return
        self.check_clock()

    def check_clock(self) -> None:
        """Raise `ComparisonLimitError` if the budget is used up."""
        self._until_clock = _STEPS_BETWEEN_CLOCKS
        now_s = time.thread_time()
        if self._began_s is None:  # made by one thread, used by another
            self._began_s = now_s
        if self.stopping is not None and self.stopping.is_set():
            raise ComparisonLimitError("results whose comparison was stopped")
        if self.steps < 0 or now_s - self._began_s > self.cpu_s:
            raise ComparisonLimitError(
                "results that can't be compared within the limits of a comparison "
                f"({self.cpu_s:g} s)"
            )


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """How values are compared.

    rel_tol, abs_tol: tolerances for floats
    dict_order: whether the order of dictionaries counts
    array_layout: whether memory order and writability of arrays count
    more_attributes: whether instances may have attributes that the expected ones don't have
    budget: limits the work; shared by all comparisons of a report
    """

    rel_tol: float = 0.0
    abs_tol: float = 0.0
    dict_order: bool = False
    array_layout: bool = False
    more_attributes: bool = False
    budget: ComparisonBudget = field(default_factory=ComparisonBudget, compare=False)


def is_oversized(line: bytes, expected: bytes) -> bool:
    """Return whether a line of a report is too long to be the expected one, so isn't parsed."""
    return len(line) > 2 * len(expected) + SPARE_BYTES

"""The combined results of a candidate's checks."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairtrial.arena.checks.prepared_check import CheckRun
from fairtrial.arena.model.verdicts import Rejection


@dataclass(slots=True)
class CheckResults:
    """The combined results of the checks of one candidate so far.

    rejection: the first rejection; None if all checks passed
    loaded: files that any check imported, by their paths inside the sandbox
    wall_s: total wall time
    cpu_s: total CPU time
    peak_rss_mb: the highest peak memory
    """

    rejection: Rejection | None = None
    loaded: set[str] = field(default_factory=set)
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0

    def add(self, run: CheckRun) -> None:
        """Add the result of one check."""
        self.rejection = self.rejection or run.rejection
        self.loaded |= run.loaded
        self.wall_s += run.wall_s
        self.cpu_s += run.cpu_s
        self.peak_rss_mb = max(self.peak_rss_mb, run.peak_rss_mb)

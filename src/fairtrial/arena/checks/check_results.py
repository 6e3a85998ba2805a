"""What the checks of a candidate come to, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairtrial.arena.checks.prepared_check import CheckRun
from fairtrial.arena.model.verdicts import Rejection


@dataclass(slots=True)
class Tally:
    """What the checks of one candidate came to, so far."""

    rejection: Rejection | None = None
    loaded: set[str] = field(default_factory=set)
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0

    def add(self, run: CheckRun) -> None:
        """One check more."""
        self.rejection = self.rejection or run.rejection
        self.loaded |= run.loaded
        self.wall_s += run.wall_s
        self.cpu_s += run.cpu_s
        self.peak_rss_mb = max(self.peak_rss_mb, run.peak_rss_mb)

"""Peak memory of benchmarks: measured in workers, and judged like times, session by session."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from fairtrial.arena.model.memory import MemoryResult, MemoryVerdict
from fairtrial.arena.model.timings import Arm, Pair, Session
from fairtrial.arena.timing.stats.autocorrelation import session_look
from fairtrial.arena.timing.stats.sequential import Claim

LEAST_MB = 0.1
"""Is added to both peaks, so that a few pages more or less are no difference: the kernel counts
pages, and counts some of them late."""
_WORDS = {
    Claim.FASTER: MemoryVerdict.SMALLER,
    Claim.SLOWER: MemoryVerdict.LARGER,
    Claim.EQUIVALENT: MemoryVerdict.EQUIVALENT,
    Claim.INCONCLUSIVE: MemoryVerdict.INCONCLUSIVE,
}
_MB = 2.0**20


def judge_memory(
    sessions: Sequence[Session], *, alpha: float, min_effect: float
) -> MemoryResult | None:
    """Return the result of peak memory; None if it wasn't measured in enough sessions."""
    pairs = [session.judged_mb for session in sessions if session.judged_mb is not None]
    if len(pairs) != len(sessions):
        return None
    logs = [math.log((pair.candidate + LEAST_MB) / (pair.base + LEAST_MB)) for pair in pairs]
    look = session_look(logs, alpha=alpha, min_effect=min_effect)
    if not math.isfinite(look.low):
        return None
    return MemoryResult(
        _WORDS[look.claim],
        growth=math.exp(look.mean),
        low=math.exp(look.low),
        high=math.exp(look.high),
        confidence=1 - alpha,
        base_mb=median(pair.base for pair in pairs),
        candidate_mb=median(pair.candidate for pair in pairs),
    )


@dataclass(slots=True)
class PeakMeter:
    """Measures the peak memory of one process during its first call, from outside.

    pid: the process; 0 if it isn't known
    peak_mb: the peak above the level before the call; None if it could not be measured
    """

    pid: int
    peak_mb: float | None = None
    _level: int = field(default=0, repr=False)
    _before: int = field(default=0, repr=False)

    def begin(self) -> None:
        """Remember the present level, and have the kernel forget the earlier peak."""
        try:  # the kernel then counts the peak from now on
            descriptor = os.open(f"/proc/{self.pid}/clear_refs", os.O_WRONLY)
            try:
                os.write(descriptor, b"5")
            finally:
                os.close(descriptor)
        except OSError:
            pass  # then only a new peak of the whole process shows
        status = _read_status(self.pid)
        self._level, self._before = status.get("VmRSS", 0), status.get("VmHWM", 0)

    def end(self) -> None:
        """Read the peak since `begin`."""
        peak = _read_status(self.pid).get("VmHWM", 0)
        if self._level and peak:
            is_known = peak > self._before or self._before <= self._level
            self.peak_mb = max(peak - self._level, 0) / _MB if is_known else None


def pair_peaks(meters: Mapping[Arm, PeakMeter]) -> Pair | None:
    """Return the peaks of both arms; None if one is not known."""
    if not meters:
        return None
    base, candidate = meters["base"].peak_mb, meters["candidate"].peak_mb
    return None if base is None or candidate is None else Pair(base, candidate)


def _read_status(pid: int) -> dict[str, int]:
    """Return the amounts of memory of a process, in bytes; empty if it can't be read."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    except OSError:
        return {}
    amounts = {}
    for line in lines:
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            amounts[name] = 1024 * int(value.split()[0])
    return amounts

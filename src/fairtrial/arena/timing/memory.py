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
MOST_LATER = 0.1
"""By which share of the base's peak a candidate's later calls may need more than its first, beyond
what the base's do: caches of the library and garbage differ by less."""


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
    """Measures the peak memory of one process from outside, in its first call and in all calls.

    pid: the process; 0 if it isn't known
    peak_mb: the peak of the first call, above the level before it; None if it isn't known
    all_mb: the peak of all calls above the same level; None if it isn't known
    """

    pid: int
    peak_mb: float | None = None
    all_mb: float | None = None
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
        self.peak_mb = self._read_peak()

    def finish(self) -> None:
        """Read the peak of all calls since `begin`."""
        self.all_mb = self._read_peak()

    def _read_peak(self) -> float | None:
        peak = _read_status(self.pid).get("VmHWM", 0)
        is_known = self._level and peak and (peak > self._before or self._before <= self._level)
        return max(peak - self._level, 0) / _MB if is_known else None


def pair_peaks(meters: Mapping[Arm, PeakMeter]) -> Pair | None:
    """Return the peaks of both arms; None if one is not known.

    These are those of first calls, unless the candidate's later ones need more: then of all.
    """
    if not meters:
        return None
    base, candidate = meters["base"], meters["candidate"]
    if base.peak_mb is None or candidate.peak_mb is None:
        return None
    if base.all_mb is not None and candidate.all_mb is not None:
        more = (candidate.all_mb - candidate.peak_mb) - (base.all_mb - base.peak_mb)
        if more > MOST_LATER * (base.peak_mb + LEAST_MB):
            return Pair(base.all_mb, candidate.all_mb)
    return Pair(base.peak_mb, candidate.peak_mb)


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

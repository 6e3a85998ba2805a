"""Work outside of samples, or in other processes: vetoes if sessions agree on it, else doubts.

These are claims about a candidate, so they have an error rate of their own. A veto needs an
interval over sessions, and allows for what another use of memory and caches changes honestly.
Doubts accuse nothing: they ask for whole processes, which show everything (`whole_process`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from fairtrial.arena.model.timings import Measurement, Session, Timing
from fairtrial.arena.timing.startup import lower_bound

MOST_OUTSIDE = 0.1
"""The largest share of a sample that may be done outside of it, beyond what the base does."""
LITTLE_OUTSIDE = 0.02
"""The share that is allowed however small the gain is."""
HONEST_OUTSIDE = 0.1
"""The share by which reading inputs and writing results may take longer than the base's: another
use of memory and caches changes them by as much, and they may take much longer than a sample."""
OUTSIDE_LEVEL = 0.002
"""The one-sided error rate of the claim that work was done outside of samples."""
HONEST_OTHERS = 0.5
"""The same for CPU time of other processes than the worker: those that start it vary as much."""
MOST_OTHERS = 0.25
"""The largest share of a sample that other processes may do, beyond what the base's do."""
UNSURE = (
    "that is too little to be sure, and nothing is held against the candidate, but its gain isn't "
    "established either; measure it again when the machine has less to do"
)


def outside_share(sessions: Sequence[Session]) -> float | None:
    """Return the work outside of samples beyond the base's, as a share of the base's samples.

    Zero unless sessions agree on it.
    """
    shares = _excess_shares(sessions, "outside_s", HONEST_OUTSIDE)
    return max(0.0, lower_bound(shares, OUTSIDE_LEVEL)) if shares else None


def _excess_shares(sessions: Sequence[Session], name: str, allowance: float = 0.0) -> list[float]:
    """Return each session's excess over the base, as a share of the base's samples.

    allowance: the share of the base's own figure that is allowed in excess

    No session counts for more than a whole sample: a candidate that idles in one session would add
    variance that hides the others.
    """
    return [
        max(-1.0, min((figure.candidate - (1 + allowance) * figure.base) / _sample_s(session), 1.0))
        for session in sessions
        if (figure := getattr(session, name)) is not None
    ]


def _sample_s(session: Session) -> float:
    """Return how long the base works for a sample: in CPU time, where it is known."""
    base = [sample for sample in session.samples if sample.is_kept and sample.arm == "base"]
    return median(sample.cpu_s or sample.wall_s for sample in base)


def _most_outside(timing: Timing) -> float:
    """Return the allowed share of work outside of samples: at most half of the gain."""
    ratio = timing.estimate.ratio if timing.estimate else math.inf
    gained = max(0.0, 1 - 1 / ratio)
    return min(MOST_OUTSIDE, max(LITTLE_OUTSIDE, gained / 2)) if ratio > 1 else MOST_OUTSIDE


def outside_vetoes(timing: Timing, sessions: Sequence[Session]) -> list[str]:
    """Return the vetoes of work that samples don't contain, and that sessions agree on."""
    vetoes = []
    if timing.outside is not None and timing.outside > _most_outside(timing):
        vetoes.append(
            f"{timing.benchmark}: work equal to {timing.outside:.0%} of the base's time is done "
            "while the clock doesn't run, or on other cores: before calls, after them, or in "
            "threads and processes that go on"
        )
    others = _excess_shares(sessions, "others_s", HONEST_OTHERS)
    share = lower_bound(others, OUTSIDE_LEVEL)
    if share > MOST_OTHERS:
        vetoes.append(
            f"{timing.benchmark}: work equal to {share:.0%} of the base's time is left to other "
            "processes, which the base doesn't do; a benchmark with cores: 2 or more allows it"
        )
    return vetoes


def find_doubts(measured: Measurement) -> list[str]:
    """Return the vetoes of a measurement that sessions don't agree on; see `outside_doubts`."""
    return [
        doubt
        for timing in measured.timings
        for doubt in outside_doubts(
            timing, [item for item in measured.sessions if item.benchmark == timing.benchmark]
        )
    ]


def outside_doubts(timing: Timing, sessions: Sequence[Session]) -> list[str]:
    """Return the doubt about a candidate whose sessions don't agree on work outside of samples.

    Some cheats are visible in a part of the sessions only, or by waiting alone. But where reading
    inputs takes much longer than calls, honest candidates vary as much, and other programs on the
    machine make them wait: so a doubt is no proof, and whole processes that confirm the gain dispel
    it.
    """
    allowed = _most_outside(timing)
    if (timing.outside or 0.0) > allowed:  # it is shown, and vetoed
        return []
    doubts = []
    shares = _excess_shares(sessions, "outside_s")
    if shares and fmean(shares) > MOST_OUTSIDE:
        count = sum(share > MOST_OUTSIDE for share in shares)
        doubts.append(
            f"{timing.benchmark}: in {count} of {len(shares)} sessions work was done while the "
            f"clock doesn't run; {UNSURE}"
        )
    stalled = _excess_shares(sessions, "stalled_s")
    if stalled and lower_bound(stalled, OUTSIDE_LEVEL) > allowed:
        share = lower_bound(stalled, OUTSIDE_LEVEL)
        doubts.append(
            f"{timing.benchmark}: replies were waited for while the clock doesn't run, equal to "
            f"{share:.0%} of the base's time, which other programs can cause, too; {UNSURE}"
        )
    return doubts

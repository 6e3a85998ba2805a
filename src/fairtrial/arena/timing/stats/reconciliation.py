"""Reconciliation: whether the saving that sessions claim appears in the total of whole processes.

Sessions time calls. Whole processes get n or 2n inputs and deliver all results; everything in
between counts, so no work can be moved past their clock. Base and candidate read and write the same
values. The candidate's total must therefore be smaller by the saving that the sessions claim:

    share = (base's total - candidate's total) / (gain x the base's time within calls)

with gain = 1 - 1/ratio from the sessions' sums. The base's time within calls comes from the same
processes, so the load of the machine cancels. The share of an honest candidate is about 1, that of
one that only moves its work about 0. The interval is that of a ratio estimator over blocks (short
and long processes of both versions); sums decide, not medians.

Wall time runs from the first input to the last result. CPU time is that of all processes from start
to end, so its share uses the difference of long and short processes, where start-up cancels. A
candidate could lengthen its short processes after the last result, when it knows how many calls
there were. Hence the sum of both, less the start-up that sessions saw, must not contradict either.

Reference::

    Cochran (1977), Sampling techniques, ch. 6: ratio estimators
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.arena.model.timings import Clock, TotalVerdict

LOOKS = (3, 4, 6, 8, 11, 15)
"""After how many blocks a decision is tried."""
CONFIDENCE = 0.99
"""The coverage of the interval at a look: each bound alone holds with 99.5 %."""
LEAST_SHARE = 0.5
"""A claim is confirmed if more of it is shown, and contradicted if less is shown."""
LEAST_NOISE = 0.01
"""The smallest relative spread of a process's time that is believed."""
SIMILAR_GAIN = 0.8
"""CPU time is compared if the gain by CPU time is at least this part of the gain by wall time."""
LARGE_CLAIM = 1.2
"""From this ratio on, a claim has to be confirmed; smaller ones can't hide much."""


@dataclass(frozen=True, slots=True)
class ProcessTotals:
    """The figures of one whole process.

    calls: the number of calls
    wall_s: wall time from the first input to the last result
    in_calls_s: the part of it that the calls are responsible for
    cpu_s: CPU time of all its processes from start to end; None where it isn't counted
    in_calls_cpu_s: CPU time of its worker in which the function was called; None if not known
    worker_cpu_s: CPU time of its worker from the first input to the last result; None if not known
    """

    calls: int
    wall_s: float
    in_calls_s: float
    cpu_s: float | None = None
    in_calls_cpu_s: float | None = None
    worker_cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class ProcessBlock:
    """One short and one long process of each version, with the same inputs.

    base, candidate: the short process, then the long one with twice the calls
    """

    base: tuple[ProcessTotals, ProcessTotals]
    candidate: tuple[ProcessTotals, ProcessTotals]


@dataclass(frozen=True, slots=True)
class SavingClaim:
    """What sessions claim of a candidate.

    ratio: the speed-up by the sums of all samples
    low: the lower bound of its interval
    cpu_ratio: the speed-up by CPU time; None if it isn't known
    startup_extra_s: how much longer than the base's its start takes
    """

    ratio: float
    low: float
    cpu_ratio: float | None = None
    startup_extra_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SavingShare:
    """The part of a claimed saving that the total shows, with its interval.

    clock: the time that it refers to
    share: the estimate
    low, high: its interval
    """

    clock: Clock
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The comparison of a claim with whole processes.

    verdict: whether the saving appears in the total
    shown: the share that the verdict rests on
    """

    verdict: TotalVerdict
    shown: SavingShare


def reconcile(
    blocks: Sequence[ProcessBlock], claim: SavingClaim, *, is_last: bool
) -> Reconciliation:
    """Compare a claimed saving with the blocks so far.

    is_last: whether no more blocks follow; then a share that is above 0 and compatible with 1 is
        confirmed, too
    """
    wall = _find_wall_share(blocks, claim)
    cpu_shares = _find_cpu_shares(blocks, claim)
    # A claim is uncertain, too: what contradicts it must contradict its lower bound.
    doubt = _gain(claim.ratio) / max(_gain(claim.low), 1e-9)
    for share in (wall, *cpu_shares):
        if share.high * doubt < LEAST_SHARE:
            return Reconciliation(TotalVerdict.CONTRADICTED, share)
    confirming = [wall] if _is_confirmed(wall, is_last=is_last) else []
    if cpu_shares:
        slope, whole = cpu_shares
        if _is_confirmed(slope, is_last=is_last) and whole.share > LEAST_SHARE:
            confirming.append(slope)
    if confirming:
        surest = min(confirming, key=lambda share: share.high - share.low)
        return Reconciliation(TotalVerdict.CONFIRMED, surest)
    return Reconciliation(TotalVerdict.UNCLEAR, wall)


def _is_confirmed(share: SavingShare, *, is_last: bool) -> bool:
    return share.low > LEAST_SHARE or (is_last and share.low > 0 and share.high >= 1)


def _gain(ratio: float) -> float:
    return 1 - 1 / ratio if ratio > 1 else 0.0


def _find_wall_share(blocks: Sequence[ProcessBlock], claim: SavingClaim) -> SavingShare:
    gain = _gain(claim.ratio)
    saved = [
        sum(run.wall_s for run in block.base) - sum(run.wall_s for run in block.candidate)
        for block in blocks
    ]
    claimed = [gain * sum(run.in_calls_s for run in block.base) for block in blocks]
    noise = [sum(run.wall_s for run in block.base) for block in blocks]
    return estimate_share("wall", saved, claimed, noise)


def _find_cpu_shares(
    blocks: Sequence[ProcessBlock], claim: SavingClaim
) -> tuple[SavingShare, SavingShare] | tuple[()]:
    """Return the shares by slope and by sum; nothing where CPU time can't be compared."""
    ratio = claim.cpu_ratio
    if ratio is None or _gain(ratio) < SIMILAR_GAIN * _gain(claim.ratio):
        return ()
    slopes, sums, claimed_slopes, claimed_sums, noise = [], [], [], [], []
    for block in blocks:
        used = [run.cpu_s for run in (*block.base, *block.candidate)]
        inner = [run.in_calls_cpu_s for run in block.base]
        if any(figure is None for figure in (*used, *inner)):
            return ()
        short, long, other_short, other_long = (figure or 0.0 for figure in used)
        inner_short, inner_long = (figure or 0.0 for figure in inner)
        slopes.append((long - short) - (other_long - other_short))
        sums.append(long + short - other_long - other_short + 2 * claim.startup_extra_s)
        claimed_slopes.append(_gain(ratio) * (inner_long - inner_short))
        claimed_sums.append(_gain(ratio) * (inner_long + inner_short))
        noise.append(long + short)
    return (
        estimate_share("cpu", slopes, claimed_slopes, noise),
        estimate_share("cpu", sums, claimed_sums, noise),
    )


def estimate_share(
    clock: Clock, saved: Sequence[float], claimed: Sequence[float], scale: Sequence[float]
) -> SavingShare:
    """Return the ratio of the sums of savings and claims, with its interval over blocks.

    scale: the base's total of each block, whose relative spread is at least `LEAST_NOISE`
    """
    from scipy import special

    count, total = len(saved), sum(claimed)
    if count < 2 or total <= 0:
        return SavingShare(clock, 0.0, -math.inf, math.inf)
    share = sum(saved) / total
    squares = sum((part - share * whole) ** 2 for part, whole in zip(saved, claimed, strict=True))
    least = LEAST_NOISE * sum(scale) / math.sqrt(count)
    error = max(math.sqrt(squares * count / (count - 1)), least) / total
    width = -float(special.stdtrit(count - 1, (1 - CONFIDENCE) / 2)) * error
    return SavingShare(clock, share, share - width, share + width)

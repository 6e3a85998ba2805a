"""The group-sequential t test: a few interim looks at the sessions that together keep one alpha.

The data are session statistics, log(candidate/base): below 0 for a faster candidate. There is an
interim look at the t interval of their mean after 6, 10, 16, 24, 34 and 46 sessions. Each look's
interval is that of an ordinary t test at the same level, which is so much smaller than alpha that
with normal statistics the chance that *any* of the six misses the true mean is at most alpha. So
the interval holds at whatever look the comparison stops, and for whatever reason.

The level is the same at each look (and doesn't grow, as O'Brien and Fleming's do) because most
comparisons should end at the first or second look. Levels that shrink would save one session in ten
where sessions spread by 1.5 %, and cost sessions on noisier machines.

References::

    Pocock (1977), Biometrika 64, 191-199: the same level at each look
    Jennison and Turnbull (1989), J. R. Stat. Soc. B 51, 305-361: repeated confidence intervals
    Jennison and Turnbull (2000), Group sequential methods, ch. 9 and 11.5: the same with t
    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15, 657-680: equivalence as an interval in bounds
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from fairtrial.arena.timing.stats.boundaries import LEVELS
from fairtrial.core import sequential

if TYPE_CHECKING:
    from fairtrial.arena.timing.stats.arrays import Values

LOOKS = (6, 10, 16, 24, 34, 46)
"""The numbers of sessions with an interim look."""


class Claim(StrEnum):
    """What an interval allows to conclude."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class SessionLook:
    """The result of an interim look at the sessions so far.

    sessions: number of sessions
    mean: mean of log(candidate/base)
    low, high: the repeated confidence interval of that mean; infinite with too few sessions
    claim: what the interval allows to conclude
    """

    sessions: int
    mean: float
    low: float
    high: float
    claim: Claim

    @property
    def is_decided(self) -> bool:
        """Whether the comparison can stop here."""
        return self.claim != Claim.INCONCLUSIVE

    @property
    def speedup(self) -> float:
        """How many times as fast as the base."""
        return _exp(-self.mean)

    @property
    def speedup_low(self) -> float:
        """The lower bound of the speed-up."""
        return _exp(-self.high)

    @property
    def speedup_high(self) -> float:
        """The upper bound of the speed-up."""
        return _exp(-self.low)


def nominal_level(alpha: float) -> float:
    """Return the level of each look's two-sided t interval for a test with this alpha.

    With it, the chance that any look misses the true mean is at most `alpha`. Between the alphas of
    the table the logarithms are interpolated. Below them Bonferroni's inequality is used, above
    them proportion: both are conservative.
    """
    _check_alpha(alpha)
    if alpha >= LEVELS[0][0]:
        return alpha * LEVELS[0][1] / LEVELS[0][0]
    if alpha < LEVELS[-1][0]:
        return alpha / len(LOOKS)
    after = bisect.bisect_right(LEVELS, -alpha, key=lambda row: -row[0])
    if after == len(LEVELS):
        return LEVELS[-1][1]
    (alpha_1, level_1), (alpha_2, level_2) = LEVELS[after - 1], LEVELS[after]
    share = math.log(alpha / alpha_1) / math.log(alpha_2 / alpha_1)
    return level_1 * math.pow(level_2 / level_1, share)


def interim_look(statistics: Sequence[float], *, alpha: float, min_effect: float) -> SessionLook:
    """Return what may be concluded after these sessions.

    Call it after 6, 10, 16, ... sessions (`next_look`), and once in between if no more will follow:
    that replaces the next look, at its level. A look after every session would inflate the error
    rate; `confidence_sequence` is for that. Raises ValueError for more sessions than the last look
    has, since there is no constant for them.

    EQUIVALENT is an interval with |log ratio| < log(1 + min_effect) from end to end, also if it
    excludes 0. FASTER is one below 0, SLOWER one above.
    """
    import numpy as np

    _check_alpha(alpha)
    if not 0 <= min_effect < math.inf:
        raise ValueError(f"min_effect must be 0 or more, e.g. 0.02 for 2 %; got {min_effect}")
    values = np.asarray(statistics, dtype=float)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise ValueError("the statistics must be a list of finite numbers, one for each session")
    if len(values) > LOOKS[-1]:
        raise ValueError(
            f"{len(values)} sessions, but the last look is after {LOOKS[-1]}; "
            "use confidence_sequence for longer runs"
        )
    mean = float(np.mean(values)) if len(values) else math.nan
    if len(values) < LOOKS[0]:
        return SessionLook(len(values), mean, -math.inf, math.inf, Claim.INCONCLUSIVE)
    low, high = (float(bounds[0]) for bounds in intervals(values[None, :], alpha))
    return SessionLook(len(values), mean, low, high, claim(low, high, min_effect))


def intervals(statistics: Values, alpha: float) -> tuple[Values, Values]:
    """Return lower and upper bounds; each row is one comparison, each column a session."""
    import numpy as np
    from scipy import special

    sessions = statistics.shape[1]
    mean = np.mean(statistics, axis=1)
    sd = np.maximum(np.std(statistics, axis=1, ddof=1), sequential.LEAST_SPREAD)
    # scipy.stats.t.isf is the same with 0.1 ms of checks and a second of imports.
    quantile = -float(special.stdtrit(sessions - 1, nominal_level(alpha) / 2))
    width = quantile * sd / math.sqrt(sessions)
    return mean - width, mean + width


def claim(low: float, high: float, min_effect: float) -> Claim:
    """Return what an interval of log(candidate/base) allows to conclude."""
    margin = math.log1p(min_effect)
    if -margin < low and high < margin:
        return Claim.EQUIVALENT
    if high < 0:
        return Claim.FASTER
    if low > 0:
        return Claim.SLOWER
    return Claim.INCONCLUSIVE


def adopt(look: SessionLook, min_effect: float) -> bool:
    """Return whether a candidate is worth adopting.

    That is, the lower bound of its speed-up is above 1, and the estimate is at least
    1 + min_effect. The true speed-up may be smaller than that; it is above 1.
    """
    return look.high < 0 and -look.mean >= math.log1p(min_effect)


def next_look(sessions: int) -> int | None:
    """Return the number of sessions at the next interim look; None after the last one."""
    return next((look for look in LOOKS if look > sessions), None)


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, e.g. 0.05; got {alpha}")


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf

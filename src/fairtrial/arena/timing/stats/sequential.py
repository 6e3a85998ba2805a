"""Group-sequential t: look at the sessions a few times, claim a difference too often never.

The numbers are session statistics, log(candidate/base): below 0 for a faster candidate. After 6,
10, 16, 24, 34 and 46 sessions one looks at the t interval of their mean. Each look's interval is
that of an ordinary t test at one and the same level, which is so much smaller than alpha that with
normal statistics the chance that *any* of the six misses the true mean is at most alpha. So the
interval holds at whatever look one stops, and for whatever reason.

The same level at each look (and not levels that grow, as O'Brien and Fleming's do) because most
comparisons should end at the first or second look. Levels that shrink would save one session in ten
where sessions spread by 1.5 %, and cost sessions on machines noisier than that.

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

if TYPE_CHECKING:
    from fairtrial.arena.timing.stats.arrays import Values

LOOKS = (6, 10, 16, 24, 34, 46)
"""After how many sessions one looks."""

LEAST_SPREAD = 1e-4
"""Sessions are never taken to spread less than this (0.01 %), whatever a handful of them says.

Two pairs of fresh processes that are timed to the same digit are luck, a coarse clock or a
simulated one. No real machine is that quiet, so that this only ever makes an interval wider.
"""


class Claim(StrEnum):
    """What an interval allows to say."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Look:
    """What the sessions say so far.

    sessions: how many there are
    mean: of log(candidate/base)
    low, high: the repeated confidence interval of that mean; infinite with too few sessions
    claim: what that allows to say
    """

    sessions: int
    mean: float
    low: float
    high: float
    claim: Claim

    @property
    def is_decided(self) -> bool:
        """Whether more sessions would change nothing that may be said."""
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
    """The level of each look's own two-sided t interval such that all looks together miss the true
    mean no more often than `alpha`.

    Between the alphas of the table by interpolation of the logarithms. Below them by Bonferroni's
    inequality, above them in proportion: both are on the safe side.
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


def look(statistics: Sequence[float], *, alpha: float, min_effect: float) -> Look:
    """What may be said after these sessions.

    To be asked after 6, 10, 16, ... sessions (`next_look`), and once in between if no more will
    come: that takes the place of the next look, at its level. Asked after every session it would be
    peeking; `anytime.confidence_sequence` is for that. For more sessions than the last look has
    there is no constant: ValueError.

    EQUIVALENT is an interval with |log ratio| < log(1 + min_effect) from end to end, also if it
    excludes 0. FASTER is one that lies below 0, SLOWER one above.
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
        return Look(len(values), mean, -math.inf, math.inf, Claim.INCONCLUSIVE)
    low, high = (float(each[0]) for each in intervals(values[None, :], alpha))
    return Look(len(values), mean, low, high, claim(low, high, min_effect))


def intervals(statistics: Values, alpha: float) -> tuple[Values, Values]:
    """The lower and upper bounds for many comparisons at once: one a row, a session a column."""
    import numpy as np
    from scipy import special

    sessions = statistics.shape[1]
    mean = np.mean(statistics, axis=1)
    sd = np.maximum(np.std(statistics, axis=1, ddof=1), LEAST_SPREAD)
    # scipy.stats.t.isf is this with 0.1 ms of checks, and a second of importing, around it.
    quantile = -float(special.stdtrit(sessions - 1, nominal_level(alpha) / 2))
    width = quantile * sd / math.sqrt(sessions)
    return mean - width, mean + width


def claim(low: float, high: float, min_effect: float) -> Claim:
    """What an interval of log(candidate/base) allows to say."""
    margin = math.log1p(min_effect)
    if -margin < low and high < margin:
        return Claim.EQUIVALENT
    if high < 0:
        return Claim.FASTER
    if low > 0:
        return Claim.SLOWER
    return Claim.INCONCLUSIVE


def adopt(found: Look, min_effect: float) -> bool:
    """Whether it is worth taking: certainly faster, and by the minimum effect as far as one knows.

    That is, the lower bound of the speed-up is above 1 and the estimate is at least
    1 + min_effect. The true speed-up may be smaller than that; it is above 1.
    """
    return found.high < 0 and -found.mean >= math.log1p(min_effect)


def next_look(sessions: int) -> int | None:
    """After how many sessions to look next; None after the last look."""
    return next((each for each in LOOKS if each > sessions), None)


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, e.g. 0.05; got {alpha}")


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf

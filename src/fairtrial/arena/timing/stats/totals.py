"""Ratios of totals and of the slowest samples, beside the median over rounds.

The statistic of a session is a median, so it says nothing about a few inputs on which a candidate
takes many times as long. Two further ratios do:

- of totals: the sum of all the base's times by the sum of the candidate's. Its interval is that of
  a ratio estimator over sessions (the residuals of the candidate's sums from the base's).
- of the slowest tenth: the mean of the base's slowest samples by the mean of the candidate's, each
  arm's own tenth over all sessions. Noise lengthens the slowest samples of both, and cancels on
  average. The interval is a jackknife over sessions.

Both are noisier than the median, for a single disturbed sample counts in full. They don't claim
anything; they must not contradict a claim. So their intervals cover 90 %, each bound 95 %.

References::

    Cochran (1977), Sampling techniques, ch. 6: ratio estimators
    Efron and Stein (1981), Ann. Stat. 9, 586-596: the jackknife estimate of variance
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairtrial.arena.model.timings import Estimate
from fairtrial.arena.timing.stats.sequential import LOOKS
from fairtrial.core import sequential

if TYPE_CHECKING:
    from fairtrial.arena.timing.stats.arrays import Values

Rounds = Sequence[tuple[float, float]]
"""The complete rounds of a session: seconds of the base and of the candidate."""
TAIL = 0.1
"""The share of samples that are the slowest."""
CONFIDENCE = 0.9
"""The coverage of both intervals: each bound alone holds with 95 %."""
FEWEST_FOR_TAIL = 20
"""The fewest rounds of which a tenth can be compared: two samples of each arm."""


def total_ratio(sessions: Sequence[Rounds]) -> Estimate | None:
    """Return the base's total time by the candidate's; None with too few sessions."""
    import numpy as np

    count = len(sessions)
    if count < LOOKS[0]:
        return None
    base, candidate = (
        np.asarray([sum(pair[arm] for pair in rounds) for rounds in sessions]) for arm in (0, 1)
    )
    growth = float(np.sum(candidate) / np.sum(base))
    residuals = candidate - growth * base
    squares = float(np.sum(residuals * residuals)) * count / (count - 1)
    error = max(
        math.sqrt(squares) / float(np.sum(candidate)), sequential.LEAST_SPREAD / math.sqrt(count)
    )
    return _estimate(-math.log(growth), error, count)


def tail_ratio(sessions: Sequence[Rounds]) -> Estimate | None:
    """Return the base's slowest tenth by the candidate's; None with too few rounds."""
    import numpy as np

    count = len(sessions)
    if count < LOOKS[0] or sum(map(len, sessions)) < FEWEST_FOR_TAIL:
        return None
    numbers = np.repeat(np.arange(count), [len(rounds) for rounds in sessions])
    seconds = np.asarray([pair for rounds in sessions for pair in rounds], dtype=float)
    log = _log_tail(seconds)
    without = np.asarray([_log_tail(seconds[numbers != left_out]) for left_out in range(count)])
    squares = float(np.sum((without - np.mean(without)) ** 2))
    return _estimate(log, math.sqrt(squares * (count - 1) / count), count)


def _log_tail(seconds: Values) -> float:
    """Return the log of the base's mean slowest samples by the candidate's."""
    import numpy as np

    size = max(1, round(TAIL * len(seconds)))
    base, candidate = np.mean(np.sort(seconds, axis=0)[-size:], axis=0)
    return math.log(float(base) / float(candidate))


def _estimate(log: float, error: float, sessions: int) -> Estimate:
    from scipy import special

    width = -float(special.stdtrit(sessions - 1, (1 - CONFIDENCE) / 2)) * error
    low, ratio, high = (math.exp(min(value, 700.0)) for value in (log - width, log, log + width))
    return Estimate(ratio, low, high, sessions, CONFIDENCE)

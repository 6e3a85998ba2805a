"""Session statistics of equal code that depend on each other in other ways than first-order noise.

Each function returns rows of comparisons with a spread of about 1; `DEPENDENT` names them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairtrial.arena.timing.stats.sequential import LOOKS

if TYPE_CHECKING:
    from fairtrial.arena.timing.stats.arrays import Values

TAIL_DF = 3
"""Degrees of freedom of heavy tails."""


def draw_heavy_tails(runs: int, seed: int, rho: float) -> Values:
    """Draw first-order autocorrelated sessions whose innovations have heavy tails."""
    import numpy as np

    steps = np.random.default_rng(seed).standard_t(TAIL_DF, (runs, LOOKS[-1]))
    values: Values = steps / math.sqrt(TAIL_DF / (TAIL_DF - 2))
    for at in range(1, LOOKS[-1]):
        values[:, at] = rho * values[:, at - 1] + math.sqrt(1 - rho * rho) * values[:, at]
    return values


def draw_two_states(runs: int, seed: int, stay: float, share: float) -> Values:
    """Draw sessions of a machine with two states, fast and slow for the candidate.

    stay: the chance that the next session has the same state
    share: the share of the variance that is due to states
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    first = rng.choice((-1.0, 1.0), (runs, 1))
    signs = np.where(rng.random((runs, LOOKS[-1])) < stay, 1.0, -1.0)
    states = first * np.cumprod(signs, axis=1)
    noise = rng.standard_normal((runs, LOOKS[-1]))
    values: Values = math.sqrt(share) * states + math.sqrt(1 - share) * noise
    return values


def draw_drift(runs: int, seed: int, change: float) -> Values:
    """Draw independent sessions plus a straight line, either way, around 0.

    change: by how many spreads the line changes from the first session to the last
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    line = np.linspace(-change / 2, change / 2, LOOKS[-1])
    signs = rng.choice((-1.0, 1.0), (runs, 1))
    values: Values = rng.standard_normal((runs, LOOKS[-1])) + signs * line
    return values


DEPENDENT: dict[str, Callable[[int, int], Values]] = {
    "rho 0.4, heavy tails": functools.partial(draw_heavy_tails, rho=0.4),
    "rho 0.6, heavy tails": functools.partial(draw_heavy_tails, rho=0.6),
    "two states for 3 sessions on average, half of the variance": functools.partial(
        draw_two_states, stay=2 / 3, share=0.5
    ),
    "two states for 5 sessions on average, half of the variance": functools.partial(
        draw_two_states, stay=0.8, share=0.5
    ),
    "two states for 5 sessions on average, 95 % of the variance": functools.partial(
        draw_two_states, stay=0.8, share=0.95
    ),
    "linear drift of one spread in 46 sessions": functools.partial(draw_drift, change=1.0),
    "linear drift of two spreads in 46 sessions": functools.partial(draw_drift, change=2.0),
}

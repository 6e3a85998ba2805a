"""Group-sequential t: look at the sessions a few times, claim a difference too often never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LOOKS = (6, 10, 16, 24, 34, 46)
"""After how many sessions one looks."""


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


def nominal_level(alpha: float) -> float:
    """The level of each look's own two-sided t-test such that all looks together claim a
    difference where there is none no more often than `alpha`."""
    raise NotImplementedError


def look(statistics: Sequence[float], *, alpha: float, min_effect: float) -> Look:
    """What may be said after these sessions; also between looks, when no more will come."""
    raise NotImplementedError


def next_look(sessions: int) -> int | None:
    """After how many sessions to look next; None after the last look."""
    return next((look for look in LOOKS if look > sessions), None)

"""The suite: all attacks, by class."""

from __future__ import annotations

from collections.abc import Collection

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.testing.cheats.attack import Attack, AttackClass
from fairtrial.testing.cheats.off_clock import BEFORE, HARNESS, SPLIT
from fairtrial.testing.cheats.processes import CLOCKS, CORE, SLOW_BASE
from fairtrial.testing.cheats.reports import FORGED, JUDGE, TWINS
from fairtrial.testing.cheats.results import ALIASED, BY_HEART, EQUAL, LAZY, LESS
from fairtrial.testing.cheats.surroundings import (
    EXITS,
    EXPECTED,
    NEIGHBOR,
    NEVER_RUN,
    ONLY_HERE,
    TESTS,
    TIMED,
)

ATTACKS: tuple[Attack, ...] = (
    *SPLIT,
    *SLOW_BASE,
    *HARNESS,
    *BEFORE,
    *CORE,
    *FORGED,
    *ALIASED,
    *BY_HEART,
    *TWINS,
    *JUDGE,
    *TIMED,
    *NEIGHBOR,
    *NEVER_RUN,
    *ONLY_HERE,
    *CLOCKS,
    *LAZY,
    *LESS,
    *TESTS,
    *EQUAL,
    *EXITS,
    *EXPECTED,
)
"""All attacks of the suite."""


def list_attacks(classes: Collection[str] = ()) -> tuple[Attack, ...]:
    """Return the attacks of some classes, or all; raise `StudyError` for an unknown class."""
    known = [group.value for group in AttackClass]
    unknown = [name for name in classes if name not in known]
    if unknown:
        message = f"there is no class of attacks '{unknown[0]}'"
        raise StudyError(Mistake((), message, did_you_mean(unknown[0], known)))
    return tuple(attack for attack in ATTACKS if not classes or attack.group in classes)

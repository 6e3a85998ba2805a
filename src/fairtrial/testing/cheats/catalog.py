"""The suite: all attacks, by class."""

from __future__ import annotations

from collections.abc import Collection

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.testing.cheats.aliased_results import (
    ALIASED,
)
from fairtrial.testing.cheats.attack import Attack, AttackClass
from fairtrial.testing.cheats.clocks import (
    CLOCKS,
)
from fairtrial.testing.cheats.detection import (
    ONLY_HERE,
    TIMED,
)
from fairtrial.testing.cheats.false_equality import (
    EQUAL,
)
from fairtrial.testing.cheats.faster_harness import (
    HARNESS,
)
from fairtrial.testing.cheats.forged_reports import (
    FORGED,
)
from fairtrial.testing.cheats.judge_attacks import (
    JUDGE,
)
from fairtrial.testing.cheats.known_inputs import (
    BY_HEART,
)
from fairtrial.testing.cheats.less_work import (
    LAZY,
    LESS,
)
from fairtrial.testing.cheats.neighbors import (
    EXPECTED,
    NEIGHBOR,
    NEVER_RUN,
)
from fairtrial.testing.cheats.off_clock import (
    BEFORE,
)
from fairtrial.testing.cheats.second_core import (
    CORE,
)
from fairtrial.testing.cheats.slow_base import (
    SLOW_BASE,
)
from fairtrial.testing.cheats.split_channels import (
    SPLIT,
)
from fairtrial.testing.cheats.test_tampering import (
    EXITS,
    TESTS,
)
from fairtrial.testing.cheats.twins import (
    TWINS,
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

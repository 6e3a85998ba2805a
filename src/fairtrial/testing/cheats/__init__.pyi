"""The names of `fairtrial.testing.cheats`; `_facade.attach` reads them from here."""

from fairtrial.testing.cheats.attack import (
    Attack as Attack,
    AttackClass as AttackClass,
    Harm as Harm,
    Kind as Kind,
)
from fairtrial.testing.cheats.catalog import (
    ATTACKS as ATTACKS,
    list_attacks as list_attacks,
)
from fairtrial.testing.cheats.outcomes import (
    AttackOutcome as AttackOutcome,
    AttackReport as AttackReport,
    AttackResult as AttackResult,
)
from fairtrial.testing.cheats.trial import (
    attack_problem as attack_problem,
)

"""The names of `fairtrial.arena.targets`; `_facade.attach` reads them from here."""

from fairtrial.arena.targets.drafts import (
    TargetDraft as TargetDraft,
    prepare_target as prepare_target,
)
from fairtrial.arena.targets.lookup import (
    is_target as is_target,
)

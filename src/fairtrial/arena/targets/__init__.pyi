"""The names of `fairtrial.arena.targets`; `_facade.attach` reads them from here."""

from fairtrial.arena.targets.drafts import (
    TargetDraft as TargetDraft,
    is_draft as is_draft,
    prepare_target as prepare_target,
)
from fairtrial.arena.targets.hot_spots import (
    HotSpot as HotSpot,
    HotSpots as HotSpots,
    find_hot_spots as find_hot_spots,
)
from fairtrial.arena.targets.lookup import (
    is_target as is_target,
)

"""The names of `fairtrial.core.sequential`; `_facade.attach` reads them from here."""

from fairtrial.core.sequential.alpha_share import (
    alpha_share as alpha_share,
)
from fairtrial.core.sequential.confidence_sequence import (
    LEAST_SPREAD as LEAST_SPREAD,
    half_width as half_width,
)
from fairtrial.core.sequential.group_sequential import (
    conditional_power as conditional_power,
    nominal_levels as nominal_levels,
    spent_levels as spent_levels,
)
from fairtrial.core.sequential.small_samples import (
    small_sample_levels as small_sample_levels,
)

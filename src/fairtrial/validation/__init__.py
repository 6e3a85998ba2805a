"""A study against itself: what only the whole of it can tell."""

from fairtrial.validation.doubts import setting_doubts, word_doubts
from fairtrial.validation.names import binding_doubts
from fairtrial.validation.whole import (
    RESERVED_COLUMNS,
    concerns_plan,
    study_mistakes,
    validate_study,
)

__all__ = [
    "RESERVED_COLUMNS",
    "binding_doubts",
    "concerns_plan",
    "setting_doubts",
    "study_mistakes",
    "validate_study",
    "word_doubts",
]

"""A study against itself: what only the whole of it can tell."""

from fairtrial.study.validation.names import binding_doubts
from fairtrial.study.validation.study_rules import (
    RESERVED_COLUMNS,
    concerns_plan,
    study_mistakes,
    validate_study,
)
from fairtrial.study.validation.warnings import setting_doubts, word_doubts

__all__ = [
    "RESERVED_COLUMNS",
    "binding_doubts",
    "concerns_plan",
    "setting_doubts",
    "study_mistakes",
    "validate_study",
    "word_doubts",
]

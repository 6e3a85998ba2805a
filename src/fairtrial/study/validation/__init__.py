"""A study against itself: what only the whole of it can tell."""

from fairtrial.study.validation.names import find_unbound_names
from fairtrial.study.validation.study_rules import (
    RESERVED_COLUMNS,
    concerns_plan,
    find_study_mistakes,
    validate_study,
)
from fairtrial.study.validation.warnings import find_unknown_terms, find_unused_settings

__all__ = [
    "RESERVED_COLUMNS",
    "find_unbound_names",
    "concerns_plan",
    "find_unused_settings",
    "find_study_mistakes",
    "validate_study",
    "find_unknown_terms",
]

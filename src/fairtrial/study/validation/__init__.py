"""Checks of a study as a whole: mistakes that no single record can find, and warnings."""

from fairtrial.study.validation.study_rules import (
    RESERVED_COLUMNS,
    concerns_plan,
    find_study_mistakes,
    validate_study,
)
from fairtrial.study.validation.used_names import find_unbound_names
from fairtrial.study.validation.warnings import (
    find_row_warnings,
    find_uncorrected_claims,
    find_unknown_terms,
    find_unused_settings,
)

__all__ = [
    "RESERVED_COLUMNS",
    "concerns_plan",
    "find_row_warnings",
    "find_study_mistakes",
    "find_unbound_names",
    "find_uncorrected_claims",
    "find_unknown_terms",
    "find_unused_settings",
    "validate_study",
]

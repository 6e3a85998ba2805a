"""What a study can be expected to find, before anything is run."""

from fairtrial.prospect.power import HypothesisPower, hypothesis_power
from fairtrial.prospect.statements import (
    PlannedTest,
    claim_warnings,
    planned_tests,
    untested_claims,
)

__all__ = [
    "HypothesisPower",
    "PlannedTest",
    "claim_warnings",
    "hypothesis_power",
    "planned_tests",
    "untested_claims",
]

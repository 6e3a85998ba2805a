"""Power analysis of a study's hypotheses, and the tests that are planned for them."""

from fairtrial.study.hypotheses.planned_tests import (
    PlannedTest,
    claim_warnings,
    planned_tests,
    untested_claims,
)
from fairtrial.study.power.hypothesis_power import HypothesisPower, hypothesis_power

__all__ = [
    "HypothesisPower",
    "PlannedTest",
    "claim_warnings",
    "hypothesis_power",
    "planned_tests",
    "untested_claims",
]

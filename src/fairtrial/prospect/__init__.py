"""What a study can be expected to find, before anything is run."""

from fairtrial.prospect.power import HypothesisPower, hypothesis_power
from fairtrial.prospect.statements import PlannedTest, planned_tests

__all__ = ["HypothesisPower", "PlannedTest", "hypothesis_power", "planned_tests"]

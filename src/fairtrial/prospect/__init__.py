"""What a study can be expected to find, before anything is run."""

from fairtrial.prospect.power import HypothesisPower, hypothesis_power

__all__ = ["HypothesisPower", "hypothesis_power"]

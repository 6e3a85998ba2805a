"""The variances that a power analysis assumes: between runs, and of the effect between problems."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.model.study import Study

PLAUSIBLE_SHARE = 0.5
"""If no `slope_sd` is stated, the effect is assumed to vary between problems by this share of it:
then about one problem in 40 has an effect in the other direction."""
PLAUSIBLE_ICC = 0.3
"""If no `icc` is stated, this is assumed where it makes the power lower."""


@dataclass(frozen=True, slots=True)
class Variances:
    """Variances of an outcome, in units of its variance within groups.

    icc: the share that lies between problems; None if not stated
    slope_sd: standard deviation of the effect between problems, in standard deviations of the
        outcome; None if not stated
    """

    icc: float | None
    slope_sd: float | None

    @property
    def within(self) -> float:
        """The variance of runs of one problem; all of it if no `icc` is stated."""
        return 1 - (self.icc or 0.0)


def get_variances(study: Study, outcome: str) -> Variances:
    """Return the variances that a study states for an outcome."""
    spec = next((spec for spec in study.outcomes if spec.name == outcome), OutcomeSpec("none"))
    slope_sd = spec.slope_sd
    if slope_sd is not None and spec.sd is not None:
        slope_sd /= spec.sd
    return Variances(spec.icc, slope_sd)


def describe_within(variances: Variances) -> str:
    """Return what is assumed about the variance of runs within a problem."""
    if variances.icc is None:
        return "as no icc is stated, none of the variance lies between problems"
    return f"icc {variances.icc:g}: runs of one problem have {variances.within:.0%} of the variance"

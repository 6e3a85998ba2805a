"""The direction of a result in words, and which differences its interval rules out."""

from __future__ import annotations

from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.comparison_results import name_levels
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.markdown_text import format_number
from fairtrial.study.report.verdicts import IN_THE_MEAN

MEDIAN = "median"
EQUIVALENCE = "TOST"


def describe_direction(test: HypothesisTest) -> str:
    """Return which of two levels is lower or higher, such as `worked is lower than plain`.

    Empty unless two levels were compared. Without a significant result it is said of the runs
    alone.
    """
    if len(test.groups) != 2 or test.estimate is None or len(test.variables) != 1:
        return ""
    first, second = name_levels(test.variables, [group.name for group in test.groups])
    by_rank = MEDIAN in test.estimate_of
    direction = test.effect_size if by_rank else test.estimate
    if not direction:
        return f"neither {first} nor {second} is higher in these runs"
    side = "higher" if direction > 0 else "lower"
    where = "" if _is_shown(test) else " in these runs (no direction is shown)"
    if by_rank:
        return f"{first} tends to {side} values than {second}{where}"
    return f"{first} is {side} than {second}{where}"


def _is_shown(test: HypothesisTest) -> bool:
    """Return whether a difference was shown, in the claimed direction or in the opposite one."""
    if EQUIVALENCE in test.method or test.p_adjusted is None:
        return test.interval is not None and (test.interval[0] > 0 or test.interval[1] < 0)
    is_opposite = test.p_opposite is not None and test.p_opposite < ALPHA / 2
    return test.p_adjusted < ALPHA or is_opposite


def describe_exclusions(test: HypothesisTest) -> str:
    """Return which differences of the smallest size of interest the 95% interval rules out.

    Empty unless two levels were compared and there is such a size.
    """
    if test.bounds is None or test.minimum_size is None or len(test.groups) != 2:
        return ""
    if len(test.variables) != 1:
        return ""
    first, second = name_levels(test.variables, [group.name for group in test.groups])
    size = f"{format_number(test.minimum_size)} or more"
    low, high = test.bounds
    suffix = IN_THE_MEAN if MEDIAN in test.estimate_of else ""
    excluded = [f"higher than {second} by {size}"] if high < test.minimum_size else []
    excluded += [f"lower by {size}" if excluded else f"lower than {second} by {size}"] * (
        low > -test.minimum_size
    )
    if not excluded:
        return f"no difference of {size}, in either direction, is ruled out{suffix}"
    return f"ruled out{suffix}: that {first} is {', and that it is '.join(excluded)}"

"""What a test says to a question: its finding, and what belongs to it."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.study.hypotheses.outcome_types import is_binary_outcome
from fairtrial.study.power.proportions import EVEN_SD
from fairtrial.study.report.samples import Sample
from fairtrial.study.report.test_questions import Question
from fairtrial.study.stats.finding import Finding, Interval


@dataclass(frozen=True, slots=True)
class Margin:
    """The smallest difference of interest.

    size: in the outcome's own units
    text: how it was stated and read
    """

    size: float
    text: str


@dataclass(frozen=True, slots=True)
class Detail:
    """A smaller comparison within a question: two of several levels, or one effect in a stratum.

    label: what is compared
    n: the runs on either side, or the pairs
    p: adjusted by Holm's rule over the details of one question; None where it isn't tested
    estimate_of: what the estimate is the size of
    """

    label: str
    n: tuple[int, ...]
    estimate: float | None
    interval: Interval | None = None
    bounds: Interval | None = None
    p: float | None = None
    p_opposite: float | None = None
    estimate_of: str = "difference of means"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a test says to a question.

    unit: what was counted: runs, or pairs of them
    difference: which difference the estimate is of
    details: smaller comparisons, and `details_title`: what they are
    is_omnibus: whether more than two groups were tested at once
    """

    finding: Finding
    unit: str
    difference: str = ""
    margin: Margin | None = None
    details_title: str = ""
    details: tuple[Detail, ...] = ()
    is_omnibus: bool = False
    notes: tuple[str, ...] = ()


def margin_of(question: Question, sd: float) -> Margin | None:
    """The claim's minimum effect, in the outcome's own units.

    sd: the standard deviation of a run within its group, which an effect without a stated sd is
        measured in
    """
    effect = question.hypothesis.minimum_effect_of_interest
    if effect is None:
        return None
    name = question.outcome.name
    if question.outcome.sd is not None:
        return Margin(effect, f"{effect:g} in {name}'s own units, as its sd is stated")
    if not sd:
        return None
    is_binary = is_binary_outcome(question.study, name)
    planned = f"; before there were any, {EVEN_SD:g} was assumed" if is_binary else ""
    text = f"the runs' sd within groups is {sd:.3g}{planned}"
    return Margin(effect * sd, f"d = {effect:g}, here {effect * sd:.3g} ({text})")


def spell_difference(sample: Sample) -> str:
    """Which of two groups is subtracted from which; numbers by name, lest it look like a sum."""
    first, second = sample.names[:2]
    variables = sample.question.comparison.variables
    if len(variables) == 1 and _is_number(first) and _is_number(second):
        return f"{variables[0]} {first} − {variables[0]} {second}"
    return f"{first} − {second}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

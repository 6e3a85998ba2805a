"""Hypotheses as they will be tested, said before anything is run: what minus what, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.core import dump, is_scalar, scalar_text
from fairtrial.study.hypotheses.averages import spell_averages
from fairtrial.study.hypotheses.comparisons import Comparison, comparisons_of, contrast_ends
from fairtrial.study.hypotheses.groups import Variable, count_cells
from fairtrial.study.hypotheses.outcomes import YES_OR_NO, why_unreadable
from fairtrial.study.hypotheses.wording import (
    is_equivalence,
    spell_claim,
    spell_test,
    why_no_operation,
    why_untestable,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import (
    AnalysisPlan,
    Hypothesis,
    HypothesisDirection,
    HypothesisKind,
)
from fairtrial.study.model.study import Study
from fairtrial.study.stats.test_names import find_test

GENERIC = "difference_in_means"
NAMELESS = "primary_outcome"
SIDED = (HypothesisDirection.GREATER, HypothesisDirection.LESS)


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """One hypothesis on one outcome, as the report will test it.

    analysis_plan_id: the plan that declares the test; None if no plan names the hypothesis
    variables: what is compared
    claim: what is tested: which level minus which, and which way
    test: the test that decides, in words; `beside`: the plan's other tests, by its own words
    is_exploratory: whether it decides nothing
    agents: those whose runs alone are tested, as it is about their option; empty if all are
    averages: which agents stand for an average over their options; empty if none does
    warning: what may be meant otherwise; empty if nothing is
    reason: why it will not be tested; empty if it will
    """

    hypothesis_id: str
    analysis_plan_id: str | None
    outcome: str
    variables: tuple[str, ...]
    claim: str = ""
    test: str = ""
    beside: tuple[str, ...] = ()
    is_exploratory: bool = False
    agents: tuple[str, ...] = ()
    averages: str = ""
    warning: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        data: dict[str, Any] = dump(self)
        return data


def planned_tests(study: Study, conditions: Sequence[Condition]) -> list[PlannedTest]:
    """Each hypothesis as its plans will test it; those that no plan names, as they will be."""
    found: list[PlannedTest] = []
    for claim in study.hypotheses:
        name = claim.hypothesis_id
        plans = [each for each in study.analysis_plans if name in each.hypothesis_ids]
        for plan in plans:
            found += _tests_of(study, conditions, claim, plan)
        found += [] if plans else _tests_of(study, conditions, claim, None)
    return found


def claim_warnings(study: Study, conditions: Sequence[Condition]) -> list[str]:
    """What may be meant otherwise than it will be tested, each thing once."""
    tests = planned_tests(study, conditions)
    found = [test.warning for test in tests if test.warning]
    found += [
        f"{test.hypothesis_id} compares agents, but {test.averages}"
        for test in tests
        if test.averages
    ]
    return list(dict.fromkeys(found))


def untested_claims(tests: Sequence[PlannedTest]) -> dict[str, list[str]]:
    """The hypotheses that won't be tested, each reason once; where only some of its outcomes are
    concerned, `h1 on speed`. What one plan leaves to another is tested.
    """
    done = {(test.hypothesis_id, test.outcome) for test in tests if not test.reason}
    partly = {name for name, _ in done}
    found: dict[str, list[str]] = {}
    for test in tests:
        if (test.hypothesis_id, test.outcome) not in done:
            part = f" on {test.outcome}" if test.hypothesis_id in partly else ""
            reasons = found.setdefault(f"{test.hypothesis_id}{part}", [])
            reasons += [test.reason] if test.reason not in reasons else []
    return found


def _tests_of(
    study: Study, conditions: Sequence[Condition], claim: Hypothesis, plan: AnalysisPlan | None
) -> Iterator[PlannedTest]:
    variables = _variables(study, conditions, claim)
    for comparison in comparisons_of(study, conditions, claim):
        asked = narrow(variables, plan, claim, comparison)
        for outcome in outcomes_asked(study, claim, plan):
            yield _state(study, claim, plan, asked, outcome, variables)


def _variables(
    study: Study, conditions: Sequence[Condition], claim: Hypothesis
) -> dict[str, Variable]:
    """What a hypothesis names, each with the levels that the plan has."""
    names = [*claim.independent_vars, *(each.name for each in claim.moderators)]
    found = {name: Variable(study, name) for name in names}
    for variable in found.values():
        if variable.source:
            count_cells(study, conditions, [variable])
    return found


def _state(
    study: Study,
    claim: Hypothesis,
    plan: AnalysisPlan | None,
    comparison: Comparison,
    outcome: str,
    variables: Mapping[str, Variable],
) -> PlannedTest:
    test = PlannedTest(
        hypothesis_id=claim.hypothesis_id,
        analysis_plan_id=plan.analysis_plan_id if plan else None,
        outcome=outcome,
        variables=comparison.variables,
        beside=tuple(dict.fromkeys(plan.tests))[1:] if plan else (),
        is_exploratory=plan is None or claim.kind is HypothesisKind.EXPLORATORY,
    )
    is_equal, word = is_equivalence(claim), deciding_word(study, plan, outcome, comparison)
    reason = (
        comparison.reason
        or why_no_operation(claim.contrast)
        or why_untestable(word, comparison, is_equal)
        or next(
            (why_unreadable(study, each) for each in study.outcomes if each.name == outcome), ""
        )
    )
    if plan is not None and plan.outcomes and outcome not in plan.outcomes:
        reason = f"plan '{plan.analysis_plan_id}' doesn't look at it"
    if reason:
        return replace(test, reason=reason)
    met = [variables[name] for name in comparison.variables]
    levels = [
        subtracted_last(study, claim, met[: position + 1], chosen)
        for position, chosen in enumerate(comparison.levels)
    ]
    has_sd = any(each.name == outcome and each.sd is not None for each in study.outcomes)
    return replace(
        test,
        claim=spell_claim(claim, comparison, levels, has_sd),
        test=spell_test(word, comparison, is_equal),
        agents=comparison.agents,
        averages=spell_averages(study, plan, comparison),
        warning=_which_way(study, claim, comparison, met, levels),
    )


def _which_way(
    study: Study,
    claim: Hypothesis,
    comparison: Comparison,
    variables: Sequence[Variable],
    levels: Sequence[Sequence[str]],
) -> str:
    """That nobody said which of two levels a directed claim subtracts from which."""
    if claim.direction not in SIDED or is_equivalence(claim) or comparison.shape != "levels":
        return ""
    (chosen,), (variable,) = levels, variables
    if len(chosen) != 2 or contrast_ends(claim, variable):
        return ""
    if _marked(study, variable.name, chosen) is not None:
        return ""
    one, other = chosen
    return (
        f"{claim.hypothesis_id}: nothing says which way '{claim.direction}' goes; it is read as "
        f"{one} − {other}, as {other} comes first. "
        f"`contrast: {{left: {one}, right: {other}}}` says so"
    )


def outcomes_asked(study: Study, claim: Hypothesis, plan: AnalysisPlan | None) -> tuple[str, ...]:
    """The outcomes that a hypothesis is tested on."""
    looked_at = plan.outcomes if plan else ()
    return claim.dependent_vars or looked_at or study.primary_outcomes or (NAMELESS,)


def is_yes_or_no(study: Study, outcome: str) -> bool:
    """Whether an outcome is declared to be yes or no."""
    return any(
        each.name == outcome and each.expected_type.strip().lower() in YES_OR_NO
        for each in study.outcomes
    )


def deciding_word(
    study: Study, plan: AnalysisPlan | None, outcome: str, comparison: Comparison
) -> str:
    """The test that decides, by its own name; a word that nobody knows stays as it is."""
    word = plan.tests[0] if plan is not None and plan.tests else GENERIC
    entry = find_test(word)
    name = word if entry is None else entry.name
    is_fisher = name == GENERIC and comparison.shape == "levels" and is_yes_or_no(study, outcome)
    return "fisher_exact" if is_fisher else name


def subtracted_last(
    study: Study, claim: Hypothesis, variables: Sequence[Variable], levels: Sequence[str]
) -> tuple[str, ...]:
    """The levels of the last of some variables, the one that others are compared with last.

    That is the right one of a contrast; else the one marked as baseline; else the first.
    """
    *before, variable = variables
    # A contrast is of one variable: a moderator may have levels of the same names.
    is_taken = any(contrast_ends(claim, each) for each in before)
    if contrast_ends(claim, variable) and not is_taken:
        return tuple(levels)
    baseline = _marked(study, variable.name, levels) or levels[0]
    return (*(level for level in levels if level != baseline), baseline)


def _marked(study: Study, name: str, levels: Sequence[str]) -> str | None:
    """The level that the study marks as baseline, if it is among these."""
    for factor in study.factors:
        if factor.name == name:
            for level in factor.levels:
                if level.metadata.get("is_baseline") and level.name in levels:
                    return level.name
    return None


def narrow(
    variables: Mapping[str, Variable],
    plan: AnalysisPlan | None,
    claim: Hypothesis,
    comparison: Comparison,
) -> Comparison:
    """Without the levels that the plan's filters leave out, if two or more are left."""
    levels = list(comparison.levels)
    for position, chosen in enumerate(levels):
        name = comparison.variables[position]
        variable = variables[name]
        if plan is None or name not in plan.filters or contrast_ends(claim, variable):
            continue
        wanted = plan.filters[name]
        listed = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        kept = {variable.find_level(scalar_text(each)) for each in listed if is_scalar(each)}
        left = tuple(level for level in chosen if level in kept)
        levels[position] = left if len(left) > 1 else chosen
    return replace(comparison, levels=tuple(levels))

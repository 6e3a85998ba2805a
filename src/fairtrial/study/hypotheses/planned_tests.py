"""The tests that a report will make of each hypothesis, known before any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.core import dump_record, is_scalar, scalar_text
from fairtrial.study.hypotheses.averages import describe_averages
from fairtrial.study.hypotheses.comparisons import plan_comparisons
from fairtrial.study.hypotheses.groups import Variable, count_cells
from fairtrial.study.hypotheses.outcome_types import explain_unreadable, is_binary_outcome
from fairtrial.study.hypotheses.planned_comparison import (
    PlannedComparison,
    find_baseline,
    find_contrast_levels,
)
from fairtrial.study.hypotheses.problem_units import ProblemUnit, find_problem_unit
from fairtrial.study.hypotheses.wording import (
    OF_EVERY_LEVEL,
    SIGNS,
    describe_claim,
    describe_test,
    describe_test_by_problem,
    describe_test_in_these_problems,
    explain_unsuitable_test,
    explain_unsupported_operation,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import (
    AnalysisPlan,
    Hypothesis,
    HypothesisDirection,
    HypothesisKind,
)
from fairtrial.study.model.study import Study
from fairtrial.study.stats.by_problem import MIN_PROBLEMS
from fairtrial.study.stats.named_tests import find_test

DEFAULT_TEST = "difference_in_means"
DEFAULT_OUTCOME = "primary_outcome"
DIRECTED = (HypothesisDirection.GREATER, HypothesisDirection.LESS)


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """The test of one hypothesis on one outcome, as the report will make it.

    hypothesis_id: the hypothesis
    analysis_plan_id: the plan that declares the test; None if no plan names the hypothesis
    outcome: the outcome that is compared
    variables: the variables whose levels are compared
    claim: what is tested: which level minus which, and in which direction
    test: the test that decides, in words
    is_by_problem: whether it compares within problems, each of which gives one value
    beside: the names of the plan's other tests
    is_exploratory: whether the test is exploratory, and decides nothing
    agents: the agents whose runs are tested, if a variable is an option of theirs; empty if the
        runs of all agents are
    averages: which agents are compared by an average over levels of their options; empty if none is
    warning: what the author of the study may have meant differently; empty if there is no doubt
    reason: why there will be no test; empty if there will be one
    """

    hypothesis_id: str
    analysis_plan_id: str | None
    outcome: str
    variables: tuple[str, ...]
    claim: str = ""
    test: str = ""
    is_by_problem: bool = False
    beside: tuple[str, ...] = ()
    is_exploratory: bool = False
    agents: tuple[str, ...] = ()
    averages: str = ""
    warning: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def planned_tests(study: Study, conditions: Sequence[Condition]) -> list[PlannedTest]:
    """Return the tests of each hypothesis, by each plan that names it.

    A hypothesis that no plan names is tested by the default test.
    """
    tests: list[PlannedTest] = []
    for hypothesis in study.hypotheses:
        name = hypothesis.hypothesis_id
        plans = [plan for plan in study.analysis_plans if name in plan.hypothesis_ids]
        for plan in plans:
            tests += _plan_tests(study, conditions, hypothesis, plan)
        if not plans:
            tests += _plan_tests(study, conditions, hypothesis, None)
    return tests


def claim_warnings(study: Study, conditions: Sequence[Condition]) -> list[str]:
    """Return warnings about hypotheses that may be meant differently than they will be tested."""
    tests = planned_tests(study, conditions)
    warnings = [test.warning for test in tests if test.warning]
    warnings += [
        f"{test.hypothesis_id} compares agents, but {test.averages}"
        for test in tests
        if test.averages
    ]
    return list(dict.fromkeys(warnings))


def untested_claims(tests: Sequence[PlannedTest]) -> dict[str, list[str]]:
    """Return the hypotheses that won't be tested, each with the reasons.

    If only some outcomes of a hypothesis are not tested, its key names the outcome: `h1 on speed`.
    What one plan leaves out and another one tests is tested.
    """
    tested = {(test.hypothesis_id, test.outcome) for test in tests if not test.reason}
    partly_tested = {name for name, _ in tested}
    untested: dict[str, list[str]] = {}
    for test in tests:
        if (test.hypothesis_id, test.outcome) not in tested:
            suffix = f" on {test.outcome}" if test.hypothesis_id in partly_tested else ""
            reasons = untested.setdefault(f"{test.hypothesis_id}{suffix}", [])
            reasons += [test.reason] if test.reason not in reasons else []
    return untested


def _plan_tests(
    study: Study, conditions: Sequence[Condition], hypothesis: Hypothesis, plan: AnalysisPlan | None
) -> Iterator[PlannedTest]:
    variables = _find_variables(study, conditions, hypothesis)
    for comparison in plan_comparisons(study, conditions, hypothesis):
        filtered = apply_filters(variables, plan, hypothesis, comparison)
        for outcome in select_outcomes(study, hypothesis, plan):
            test = _plan_test(study, hypothesis, plan, filtered, outcome, variables)
            if test.reason:
                yield test
                continue
            name = choose_test(study, plan, outcome, filtered)
            unit = find_problem_unit(study, conditions, plan, filtered)
            if reason := explain_few_problems(name, unit):
                yield replace(test, claim="", averages="", warning="", agents=(), reason=reason)
                continue
            is_interaction = name == DEFAULT_TEST and filtered.shape == "interaction"
            if unit is not None and unit.generalizes and is_interaction:
                # By problem, an interaction in rates is tested by permutation, too.
                name = "fisher_exact" if is_binary_outcome(study, outcome) else name
            text = _describe_test(name, filtered, hypothesis, unit)
            is_by_problem = _is_by_problem(name, unit)
            yield replace(test, test=text, is_by_problem=is_by_problem)


def _is_by_problem(name: str, unit: ProblemUnit | None) -> bool:
    """Return whether a test compares levels within problems, and takes problems as units."""
    is_model = name == "mixed_effects"
    return unit is not None and unit.is_within and unit.generalizes and not is_model


def explain_few_problems(name: str, unit: ProblemUnit | None) -> str:
    """Return why there are too few problems for a claim about problems in general; else empty."""
    if unit is None or not unit.generalizes or unit.problems >= MIN_PROBLEMS:
        return ""
    if name == "mixed_effects":
        return ""
    return (
        f"a claim about problems in general needs {MIN_PROBLEMS} or more of them, and there are "
        f"{unit.problems}; `generalize: these_problems_only` in the plan tests a claim about "
        "exactly these"
    )


def _describe_test(
    name: str, comparison: PlannedComparison, hypothesis: Hypothesis, unit: ProblemUnit | None
) -> str:
    """Return the test that the report will make, by problem if the problem is the unit."""
    is_equivalence = hypothesis.is_equivalence
    is_slope_within = comparison.shape == "slope" and unit is not None and unit.is_within
    if name == "mixed_effects" and is_slope_within and unit is not None and unit.generalizes:
        name = "regression"  # a mixed model would take the slope as the same in all problems
    if unit is None or name == "mixed_effects":
        text = describe_test(name, comparison, is_equivalence)
    elif unit.generalizes:
        text = describe_test_by_problem(name, comparison, is_equivalence, unit)
    else:
        text = describe_test_in_these_problems(name, comparison, is_equivalence, unit)
    has_several = comparison.shape == "levels" and len(comparison.levels[0]) > 2
    return f"{text}, {OF_EVERY_LEVEL}" if has_several and hypothesis.direction in SIGNS else text


def _find_variables(
    study: Study, conditions: Sequence[Condition], hypothesis: Hypothesis
) -> dict[str, Variable]:
    """Return the variables that a hypothesis names, with the levels that occur in the plan."""
    names = [
        *hypothesis.independent_vars,
        *(moderator.name for moderator in hypothesis.moderators),
    ]
    variables = {name: Variable(study, name) for name in names}
    for variable in variables.values():
        if variable.source:
            count_cells(study, conditions, [variable])  # adds the levels that occur
    return variables


def _plan_test(
    study: Study,
    hypothesis: Hypothesis,
    plan: AnalysisPlan | None,
    comparison: PlannedComparison,
    outcome: str,
    variables: Mapping[str, Variable],
) -> PlannedTest:
    test_name = choose_test(study, plan, outcome, comparison)
    test = PlannedTest(
        hypothesis_id=hypothesis.hypothesis_id,
        analysis_plan_id=plan.analysis_plan_id if plan else None,
        outcome=outcome,
        variables=comparison.variables,
        beside=tuple(dict.fromkeys(plan.tests))[1:] if plan else (),
        is_exploratory=plan is None or hypothesis.kind is HypothesisKind.EXPLORATORY,
        reason=_explain_untestable(study, hypothesis, plan, comparison, outcome, test_name),
    )
    if test.reason:
        return test
    compared = [variables[name] for name in comparison.variables]
    levels = [
        put_baseline_last(study, hypothesis, compared[: position + 1], selected)
        for position, selected in enumerate(comparison.levels)
    ]
    has_sd = any(spec.name == outcome and spec.sd is not None for spec in study.outcomes)
    return replace(
        test,
        claim=describe_claim(hypothesis, comparison, levels, has_sd),
        agents=comparison.agents,
        averages=describe_averages(study, plan, comparison),
        warning=_warn_of_direction(study, hypothesis, comparison, compared, levels),
    )


def _explain_untestable(
    study: Study,
    hypothesis: Hypothesis,
    plan: AnalysisPlan | None,
    comparison: PlannedComparison,
    outcome: str,
    test_name: str,
) -> str:
    """Return why a hypothesis won't be tested on an outcome; empty if it will."""
    if plan is not None and plan.outcomes and outcome not in plan.outcomes:
        return f"plan '{plan.analysis_plan_id}' doesn't look at it"
    specs = [spec for spec in study.outcomes if spec.name == outcome]
    return (
        comparison.reason
        or explain_unsupported_operation(hypothesis.contrast)
        or explain_unsuitable_test(test_name, comparison, hypothesis.is_equivalence)
        or (explain_unreadable(study, specs[0]) if specs else "")
    )


def _warn_of_direction(
    study: Study,
    hypothesis: Hypothesis,
    comparison: PlannedComparison,
    variables: Sequence[Variable],
    levels: Sequence[Sequence[str]],
) -> str:
    """Return a warning if a directed hypothesis doesn't say which level is subtracted."""
    is_directed = hypothesis.direction in DIRECTED and not hypothesis.is_equivalence
    if not is_directed or comparison.shape != "levels":
        return ""
    (ordered,), (variable,) = levels, variables
    if len(ordered) != 2 or find_contrast_levels(hypothesis, variable):
        return ""
    if find_baseline(study, variable.name, ordered) is not None:
        return ""
    left, right = ordered
    return (
        f"{hypothesis.hypothesis_id}: nothing says which way '{hypothesis.direction}' goes; it is "
        f"read as {left} − {right}, as {right} comes first. "
        f"`contrast: {{left: {left}, right: {right}}}` says so"
    )


def select_outcomes(
    study: Study, hypothesis: Hypothesis, plan: AnalysisPlan | None
) -> tuple[str, ...]:
    """Return the outcomes that a hypothesis is tested on."""
    plan_outcomes = plan.outcomes if plan else ()
    return (
        hypothesis.dependent_vars or plan_outcomes or study.primary_outcomes or (DEFAULT_OUTCOME,)
    )


def choose_test(
    study: Study, plan: AnalysisPlan | None, outcome: str, comparison: PlannedComparison
) -> str:
    """Return the name of the test that decides; an unknown name in the plan is returned unchanged.

    For a binary outcome the default test is Fisher's exact test.
    """
    given = plan.tests[0] if plan is not None and plan.tests else DEFAULT_TEST
    entry = find_test(given)
    name = given if entry is None else entry.name
    is_default = name == DEFAULT_TEST and comparison.shape == "levels"
    return "fisher_exact" if is_default and is_binary_outcome(study, outcome) else name


def put_baseline_last(
    study: Study, hypothesis: Hypothesis, variables: Sequence[Variable], levels: Sequence[str]
) -> tuple[str, ...]:
    """Return levels of the last of some variables, with the one that is subtracted at the end.

    That is the right side of a contrast, else the level marked as baseline, else the first level.
    """
    *earlier, variable = variables
    # A contrast concerns one variable; a moderator may have levels of the same names.
    is_taken = any(find_contrast_levels(hypothesis, other) for other in earlier)
    if find_contrast_levels(hypothesis, variable) and not is_taken:
        return tuple(levels)
    baseline = find_baseline(study, variable.name, levels) or levels[0]
    return (*(level for level in levels if level != baseline), baseline)


def apply_filters(
    variables: Mapping[str, Variable],
    plan: AnalysisPlan | None,
    hypothesis: Hypothesis,
    comparison: PlannedComparison,
) -> PlannedComparison:
    """Return the comparison without levels that the plan filters out, if two or more are left."""
    levels = list(comparison.levels)
    for position, selected in enumerate(levels):
        name = comparison.variables[position]
        variable = variables[name]
        if plan is None or name not in plan.filters or find_contrast_levels(hypothesis, variable):
            continue
        given = plan.filters[name]
        values = given if isinstance(given, (list, tuple)) else [given]
        kept = {variable.find_level(scalar_text(value)) for value in values if is_scalar(value)}
        filtered = tuple(level for level in selected if level in kept)
        levels[position] = filtered if len(filtered) > 1 else selected
    return replace(comparison, levels=tuple(levels))

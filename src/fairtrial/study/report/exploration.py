"""Comparisons that no plan declared, tested like planned claims and marked exploratory.

They have the same unit of inference, intervals and wording as claims; all comparisons that are made
together are adjusted together, by Holm's method unless the study's plans state another policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS
from fairtrial.study.hypotheses.groups import Variable
from fairtrial.study.hypotheses.planned_tests import DEFAULT_OUTCOME, DEFAULT_TEST
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis, OutcomeSpec
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.report.claim_families import find_policy
from fairtrial.study.report.exploration_record import FAMILY, Exploration
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.hypothesis_testing import judge_plans
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.verdicts import TestVerdict

PLAN = "exploratory"
NOT_DECLARED = "no plan declared this comparison"
MAX_GROUPS = 1_000


def explore(
    study: Study,
    conditions: Sequence[Condition],
    run_results: Iterable[RunResult],
    variables: Sequence[str],
    *,
    outcomes: Sequence[str] = (),
    by: str | None = None,
) -> Exploration:
    """Compare the levels of variables on outcomes, whatever the study's plans declare.

    Raises `StudyError` if a name is unknown, or no run has a value of an outcome.

    run_results: read once, in any order
    variables: factors, blocks or options of agents, or `agent_id`
    outcomes: declared outcomes, or names of metrics or evaluations; by default the primary outcomes
    by: also compare within each problem (`problem`), family of problems (`family`), agent, or level
        of another variable
    """
    names = tuple(dict.fromkeys(variables))
    _check_names(study, names, by)
    chosen = tuple(dict.fromkeys(outcomes)) or _default_outcomes(study)
    plan = _make_plan(study, names, chosen)
    table, families = _collect(_ask(study, plan), conditions, run_results)
    _check_values(table, chosen)
    _declare_binary(table, chosen)
    groups = _find_groups(table, families, by) if by else {}
    filtered = [replace(plan, filters=filters) for filters in groups.values()]
    whole = [_mark(test) for test in judge_plans(table, [plan])]
    within = [_mark(test) for test in judge_plans(table, filtered)]
    size = len(within) // len(groups) if groups else 0
    parts = {
        group: tuple(within[index * size : (index + 1) * size])
        for index, group in enumerate(groups)
    }
    return Exploration(
        study, names, chosen, tuple(whole), by or "", parts, tuple(_list_notes(table))
    )


def _check_names(study: Study, names: Sequence[str], by: str | None) -> None:
    """Raise `StudyError` if a name is no variable of the study, or is compared within itself."""
    if not names:
        raise StudyError(Mistake(("compare",), "needs the name of a factor, or agent_id"))
    known = [factor.name for factor in study.factors] + [block.name for block in study.blocks]
    choices = [*known, AGENT_FACTORS[0], PROBLEM_FACTORS[0]]
    for where, name in (*(("compare", name) for name in names), ("by", by)):
        if name is None or (where == "by" and name == FAMILY):
            continue
        if not Variable(study, name).source:
            hint = did_you_mean(name, [*choices, FAMILY] if where == "by" else choices)
            message = f"'{name}' is no factor, block or option of the study"
            raise StudyError(Mistake((where,), message, hint))
    own = {_source(study, name) for name in names}
    if by is not None and by != FAMILY and _source(study, by) in own:
        raise StudyError(Mistake(("by",), f"'{by}' is what is compared", "choose another one"))


def _source(study: Study, name: str) -> str:
    """Return what a variable is, by one name where it has several."""
    source = Variable(study, name).source
    return source if source in ("agent", "problem") else name.removeprefix("block_")


def _default_outcomes(study: Study) -> tuple[str, ...]:
    declared = tuple(outcome.name for outcome in study.outcomes)
    return study.primary_outcomes or declared or (DEFAULT_OUTCOME,)


def _make_plan(study: Study, names: Sequence[str], outcomes: Sequence[str]) -> AnalysisPlan:
    """Return a plan of these comparisons, as much like the plans of the study as they agree."""
    policies = {find_policy(plan)[0] for plan in study.analysis_plans} - {"none"}
    targets = {plan.generalize for plan in study.analysis_plans}
    return AnalysisPlan(
        PLAN,
        hypothesis_ids=tuple(names),
        tests=(DEFAULT_TEST,),
        outcomes=tuple(outcomes),
        multiple_comparison_policy=policies.pop() if len(policies) == 1 else "holm",
        generalize=targets.pop() if len(targets) == 1 else "problems",
    )


def _ask(study: Study, plan: AnalysisPlan) -> Study:
    """Return the study with the hypotheses and outcomes of a plan in place of its own."""
    hypotheses = [
        Hypothesis(name, "compared", f"{name} makes a difference", independent_vars=(name,))
        for name in plan.hypothesis_ids
    ]
    declared = {outcome.name for outcome in study.outcomes}
    added = [OutcomeSpec(name) for name in plan.outcomes if name not in declared]
    return replace(
        study,
        hypotheses=tuple(hypotheses),
        analysis_plans=(plan,),
        outcomes=(*study.outcomes, *added),
    )


def _collect(
    study: Study, conditions: Sequence[Condition], run_results: Iterable[RunResult]
) -> tuple[RunTable, dict[str, str]]:
    """Read all results once; returns their table, and the family of each problem."""
    table = RunTable(study, conditions)
    families: dict[str, str] = {}
    for result in run_results:
        table.add(result)
        spec = result.run_spec
        if spec is not None and spec.problem_spec_ref not in families:
            family = spec.execution_metadata.get("problem_family")
            if spec.problem_spec_ref is not None and family is not None:
                families[spec.problem_spec_ref] = str(family)
    return table, families


def _check_values(table: RunTable, outcomes: Sequence[str]) -> None:
    """Raise `StudyError` if no run has a value of an outcome."""
    if not len(table):
        raise StudyError("no run has ended yet: there is nothing to compare")
    for name in outcomes:
        reader = table.readers[name]
        reason = reader.reason or ("" if reader.value_count else reader.explain_missing())
        if reason and not table.failed.all():
            raise StudyError(Mistake(("outcome",), reason))


def _declare_binary(table: RunTable, outcomes: Sequence[str]) -> None:
    """Treat outcomes that the study doesn't declare as yes/no if all their values are 0 or 1."""
    import numpy as np

    specs = []
    for spec in table.study.outcomes:
        values = table.values(spec.name)
        values = values[~np.isnan(values)]
        is_added = spec == OutcomeSpec(spec.name) and spec.name in outcomes
        is_binary = is_added and len(values) and np.isin(values, (0.0, 1.0)).all()
        specs.append(replace(spec, expected_type="bool") if is_binary else spec)
    table.study = replace(table.study, outcomes=tuple(specs))


def _find_groups(table: RunTable, families: dict[str, str], by: str) -> dict[str, dict[str, Any]]:
    """Return the filters that select the runs of each group."""
    problem = PROBLEM_FACTORS[0]
    if by == FAMILY:
        members: dict[str, list[str]] = {}
        for name in filter(None, table.problems):
            members.setdefault(families.get(name) or "(none)", []).append(name)
        groups: dict[str, dict[str, Any]] = {
            family: {problem: names} for family, names in members.items()
        }
    else:
        variable, codes = table.variable(by)
        present = {int(code) for code in codes}
        groups = {
            level: {by: level} for rank, level in enumerate(variable.values) if rank in present
        }
    if len(groups) > MAX_GROUPS:
        message = f"'{by}' has {len(groups):,} groups; {MAX_GROUPS:,} can be shown"
        raise StudyError(Mistake(("by",), message, "`family` makes fewer groups of problems"))
    return groups


def _mark(test: HypothesisTest) -> HypothesisTest:
    """Return a test as an exploratory one, which no plan declared."""
    notes = tuple(note for note in test.notes if PLAN not in note)
    test = replace(test, analysis_plan_id=None, standing="exploratory", notes=notes)
    if test.verdict is TestVerdict.NOT_TESTED:
        return test
    why = f"{NOT_DECLARED}; {test.why}"
    return replace(test, verdict=TestVerdict.EXPLORATORY, verdict_with=test.verdict, why=why)


def _list_notes(table: RunTable) -> Iterator[str]:
    if table.pending:
        yield f"an interim look: {table.pending:,} planned runs are not done yet"
    if table.totals.without_condition:
        number = table.totals.without_condition
        yield f"results whose condition is not in the study, left out: {number:,}"
    yield from table.remarks()

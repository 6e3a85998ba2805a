"""The text of a plan for people: conditions, balance, planned tests and power."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import canonical_json, on_one_line
from fairtrial.study.design.agent_options import format_agents
from fairtrial.study.design.balance import BalanceReport, DesignBalance
from fairtrial.study.design.constraints import constraint_message
from fairtrial.study.design.runs import (
    DEFAULT_AGENT,
    DEFAULT_PROBLEM,
)
from fairtrial.study.hypotheses.planned_tests import PlannedTest
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import Factor
from fairtrial.study.report.markdown_text import format_count
from fairtrial.study.report.plan_line import LABEL_WIDTH, PlanLine
from fairtrial.study.report.plan_summary import PlanSummary
from fairtrial.study.report.power_text import power_curve_lines, power_lines
from fairtrial.study.stopping.look_plan import LookPlan

SHOWN_CONDITIONS = 16
SHOWN_LOST_CELLS = 5
LONGEST_TITLE = 500
WEAK_ASSOCIATION = 0.1
"""Associations of two factors below this are not worth a line."""
HEADING_WIDTH = 8


@dataclass(frozen=True, slots=True)
class PlanText:
    """The text of a plan, in parts that a terminal lays out.

    title: the study's id and title
    size: lines about the design and the number of runs
    columns: the columns of the table of conditions
    rows: its first rows
    total_rows: how many rows it has in all
    has_remarks: whether its last column has remarks about constraints
    details: lines about balance, planned tests, power and changes; computed while they are read
    """

    title: str
    size: Sequence[PlanLine]
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    total_rows: int
    has_remarks: bool
    details: Iterator[PlanLine]


def format_plan(
    plan: PlanSummary, *, old: PlanSummary | None = None, with_curves: bool = False
) -> PlanText:
    """Return the text of a plan, for readers who may not be statisticians.

    old: the plan of another version of the study, of which the text says what is kept
    with_curves: whether the power is drawn against the number of problems and of replicates
    """
    study = plan.study
    shown = plan.conditions[:SHOWN_CONDITIONS]
    has_remarks = any(condition.constraint_messages for condition in shown)
    columns, rows = _format_conditions(plan, shown, has_remarks)
    return PlanText(
        title=on_one_line(f"{study.study_id}: {study.title}", LONGEST_TITLE),
        size=list(_size_lines(plan)),
        columns=columns,
        rows=rows,
        total_rows=len(plan.conditions),
        has_remarks=has_remarks,
        details=_all_detail_lines(plan, old, with_curves=with_curves),
    )


def _all_detail_lines(
    plan: PlanSummary, old: PlanSummary | None, *, with_curves: bool
) -> Iterator[PlanLine]:
    yield from _detail_lines(plan)
    for variances in plan.pilot:
        yield PlanLine(f"pilot    {variances}", 0, LABEL_WIDTH)
    if with_curves:
        yield from power_curve_lines(plan.power_curves)
    if old is not None:
        yield PlanLine()
        yield from _change_lines(plan, old)


def _change_lines(new: PlanSummary, old: PlanSummary) -> Iterator[PlanLine]:
    """Yield lines that say what a change of a study keeps of its plan."""
    for name, counts in new.compare_with(old).items():
        yield PlanLine(
            f"{name:10}  {counts['kept']:,} kept, {counts['new']:,} new, "
            f"{counts['dropped']:,} dropped"
        )
    if new.study.study_id != old.study.study_id:
        names = f"'{old.study.study_id}' became '{new.study.study_id}'"
        yield PlanLine(f"study_id is part of every run's id: {names}, so no run is kept")


def _size_lines(plan: PlanSummary) -> Iterator[PlanLine]:
    excluded = len(plan.conditions) - len(plan.admissible)
    remark = f", {excluded:,} of them excluded by constraints" if excluded else ""
    size = format_count(len(plan.conditions), "condition")
    design = f"{plan.study.design_spec.kind}: {size}{remark}"
    yield PlanLine(f"design  {design}", 0, HEADING_WIDTH)
    yield PlanLine(f"runs    {_format_runs(plan)}", 0, HEADING_WIDTH)
    for name in _find_defaults(plan):
        yield PlanLine(f"the study names none, so {name} is used", HEADING_WIDTH, HEADING_WIDTH)


def _format_runs(plan: PlanSummary) -> str:
    """Return `120 = 12 conditions × 5 replicates × ...`, or only the sum if it is no product."""
    agents, problems = (set(map(len, names)) for names in plan.used_names)
    if len(agents) != 1 or len(problems) != 1:
        return f"{plan.runs:,}"
    terms = [
        format_count(len(plan.admissible), "condition"),
        format_count(plan.replicates, "replicate"),
        format_count(agents.pop(), "agent"),
        format_count(problems.pop(), "problem"),
    ]
    return f"{plan.runs:,} = {' × '.join(terms)}"


def _find_defaults(plan: PlanSummary) -> list[str]:
    """Return the default agent and problem, as far as the study uses them."""
    used = {name for sets in plan.used_names for names in sets for name in names}
    return [name for name in (DEFAULT_AGENT, DEFAULT_PROBLEM) if name in used]


def _format_conditions(
    plan: PlanSummary, conditions: Sequence[Condition], has_remarks: bool
) -> tuple[list[str], list[list[Any]]]:
    """Return columns and rows of the table of conditions."""
    factors = [(factor.name, _level_names(factor)) for factor in plan.study.factors]
    blocks = [block.name for block in plan.study.blocks]
    rules = {constraint_message(rule): rule.constraint_id for rule in plan.study.constraints}
    columns = ["condition", *blocks, *(name for name, _ in factors)]
    rows = [
        [
            condition.condition_id,
            *(condition.block_assignments.get(name) for name in blocks),
            *(_level(condition.factor_assignments.get(name), names) for name, names in factors),
            *([_remark(condition, rules)] if has_remarks else []),
        ]
        for condition in conditions
    ]
    return [*columns, *(["remark"] if has_remarks else [])], rows


def _detail_lines(plan: PlanSummary) -> Iterator[PlanLine]:
    study = plan.study
    if len(plan.conditions) > 1:
        yield PlanLine()
        tied = {factor.name: factor.tied_to for factor in study.factors if factor.tied_to}
        for line in balance_lines(plan.balance, tied):
            yield PlanLine(line, 0, LABEL_WIDTH)
    # Without exclusions the facts of the design state its resolution and aliases.
    if plan.aliasing is not None and plan.aliasing.excluded:
        yield PlanLine(f"aliases  {plan.aliasing.text}", 0, LABEL_WIDTH)
    if study.hypotheses:
        yield PlanLine()
        for test in plan.tests:
            yield PlanLine(f"tests    {_format_test(test)}", 0, LABEL_WIDTH)
    for power in plan.power:
        yield PlanLine()
        yield from power_lines(power, plan.replicates)
    if plan.looks is not None:
        yield PlanLine()
        yield from _look_lines(plan.looks)
    unstated = [h.hypothesis_id for h in study.hypotheses if h.minimum_effect_of_interest is None]
    if unstated:
        yield PlanLine()
        text = f"power    {', '.join(unstated)}: unknown without a minimum_effect_of_interest"
        yield PlanLine(text, 0, LABEL_WIDTH)


def _level_names(factor: Factor) -> dict[str, str]:
    """Return the names of a factor's levels by value; long values, such as prompts, need them."""
    return {canonical_json(level.value): level.name for level in factor.levels}


def _level(value: Any, names: Mapping[str, str]) -> Any:
    return names.get(canonical_json(value), value)


def _remark(condition: Condition, rules: Mapping[str, str]) -> str:
    if not condition.constraint_messages:
        return ""
    verb = "warning" if condition.admissible else "never runs"
    return f"{verb}: {', '.join(rules[message] for message in condition.constraint_messages)}"


def balance_lines(report: BalanceReport, tied: Mapping[str, str] | None = None) -> list[str]:
    """Return lines about the balance of a design, without claims about levels not counted.

    tied: factors that follow another one on purpose, by name, which get only one line
    """
    tied = tied or {}
    balance = report.after
    lines = [
        f"{name} moves with {leader}: their effects can't be told apart"
        for name, leader in tied.items()
    ]
    if balance.is_even:
        lines.append("even: every level, and every pair of levels, occurs equally often")
    lines += _imbalance_lines(balance, tied)
    losses = [loss for loss in report.lost_cells if not tied.keys() & loss.levels.keys()]
    lines += [str(loss) for loss in losses[:SHOWN_LOST_CELLS]]
    more = len(losses) + report.lost_cells_left_out - SHOWN_LOST_CELLS
    if more > 0:
        lines.append(f"... and {more:,} more pairs of levels that never run")
    if len(lines) == len(tied):
        is_even = all(factor.is_even for factor in balance.factors if factor.name not in tied)
        text = "every level occurs equally often" if is_even else "values are spread over ranges"
        if balance.pairs:
            which = "no others" if tied else "no two factors"
            text += f"; {which} go together (associations are below {WEAK_ASSOCIATION:g})"
        lines.append(text)
    if balance.pairs_left_out:
        lines.append(f"{balance.pairs_left_out:,} pairs of factors were not checked: too many")
    return [f"balance  {line}" for line in lines]


def _imbalance_lines(balance: DesignBalance, tied: Mapping[str, str]) -> Iterator[str]:
    for factor in balance.factors:
        if factor.counts and not factor.is_even and factor.name not in tied:
            counts = [*factor.counts.items(), *((level, 0) for level in factor.unused)]
            (level, rows), *rest = counts
            first = f"{level} in {format_count(rows, 'condition')}"
            further = (f"{name} in {number:,}" for name, number in rest)
            yield f"{factor.name}: {', '.join([first, *further])}"
    for pair in balance.pairs:
        if tied.keys() & {pair.first, pair.second}:
            continue
        both = f"{pair.first} and {pair.second}"
        if pair.is_confounded:
            yield f"{both} can't be told apart: they always change together"
        elif pair.association >= WEAK_ASSOCIATION:
            yield f"{both} go together ({pair.association:.2f}; 0 is not at all, 1 is always)"


def _format_test(test: PlannedTest) -> str:
    what = f"{' × '.join(test.variables) or 'no variable'} on {test.outcome}"
    head = f"{test.hypothesis_id} ({what})"
    if test.reason:
        return f"{head}: not tested: {test.reason}"
    by = "by problem: " if test.is_by_problem else "by "
    parts = [f"{head}: {test.claim}, {by}{test.test}"]
    parts += [f"beside it {', '.join(test.beside)}"] if test.beside else []
    parts += [f"only the runs of {format_agents(test.agents)}"] if test.agents else []
    if test.analysis_plan_id is None:
        parts.append("exploratory, as no plan names it")
    else:
        kind = "exploratory, " if test.is_exploratory else ""
        parts.append(f"{kind}plan {test.analysis_plan_id}")
    return "; ".join(parts)


def _look_lines(looks: LookPlan) -> Iterator[PlanLine]:
    units = ", ".join(f"{units:,}" for units in looks.units)
    runs = ", ".join(f"{runs:,}" for runs in looks.runs)
    bounds = ", ".join(f"{level:.2g}" for level in looks.levels)
    head = f"looks    {len(looks.units)}, after {units} {looks.unit} ({runs} runs)"
    yield PlanLine(f"{head}; {looks.spending}", 0, LABEL_WIDTH)
    yield PlanLine(f"decided if p ({looks.sides}) is below {bounds}", LABEL_WIDTH, LABEL_WIDTH)
    expected = [f"{_format_saving(looks.without_effect, looks.runs[-1])} if no claim holds"]
    if looks.with_effect is not None:
        saving = _format_saving(looks.with_effect, looks.runs[-1])
        expected.append(f"{saving} at the smallest effects of interest")
    yield PlanLine(f"expected runs: {'; '.join(expected)}", LABEL_WIDTH, LABEL_WIDTH)


def _format_saving(expected: float, planned: int) -> str:
    return f"{expected:,.0f} of {planned:,} ({1 - expected / planned:.0%} saved)"

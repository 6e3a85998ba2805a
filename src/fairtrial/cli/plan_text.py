"""What `fairtrial plan` tells people: conditions, balance, power, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from fairtrial.cli.output import count, print_facts, print_wrapped, style
from fairtrial.cli.plan_data import Plan
from fairtrial.cli.table import print_table
from fairtrial.core import canonical_json, on_one_line
from fairtrial.study import (
    DEFAULT_AGENT,
    DEFAULT_PROBLEM,
    TARGET_POWER,
    BalanceReport,
    Condition,
    DesignBalance,
    Factor,
    HypothesisPower,
    PlannedTest,
    agents_of,
    balance_report,
    hypothesis_power,
    message_of,
    planned_tests,
    problems_of,
    replicates_of,
    spell_agents,
)

SHOWN_CONDITIONS = 16
MOST_LOSSES = 5
LONGEST_TITLE = 500
WEAK_ASSOCIATION = 0.1
"""Associations of two factors below this are not worth a line."""
INDENT = " " * 9


def print_plan(plan: Plan) -> None:
    """All of it, for a person who may be no statistician."""
    study = plan.study
    title = on_one_line(f"{study.study_id}: {study.title}", LONGEST_TITLE)
    click.echo(style(title, bold=True))
    excluded = len(plan.conditions) - len(plan.admissible)
    left_out = f", {excluded:,} of them excluded by constraints" if excluded else ""
    made = f"{study.design_spec.kind}: {count(len(plan.conditions), 'condition')}{left_out}"
    print_wrapped(f"design  {made}", "", " " * 8)
    print_wrapped(f"runs    {_run_sum(plan)}", "", " " * 8)
    for name in _stand_ins(plan):
        print_wrapped(f"the study names none, so {name} stands in", " " * 8)
    click.echo()
    _print_conditions(plan)
    print_facts(plan.facts)
    if len(plan.conditions) > 1:
        click.echo()
        tied = {factor.name: factor.tied_to for factor in study.factors if factor.tied_to}
        for line in balance_lines(balance_report(study, plan.conditions), tied):
            print_wrapped(line, "", INDENT)
    if study.hypotheses:
        click.echo()
        for test in planned_tests(study, plan.conditions):
            print_wrapped(f"tests    {_spell_planned(test)}", "", INDENT)
    for power in hypothesis_power(study, plan.conditions):
        click.echo()
        _print_power(power, replicates_of(study))
    silent = [h.hypothesis_id for h in study.hypotheses if h.minimum_effect_of_interest is None]
    if silent:
        click.echo()
        text = f"power    {', '.join(silent)}: unknown without a minimum_effect_of_interest"
        print_wrapped(text, "", INDENT)


def _run_sum(plan: Plan) -> str:
    """`120 = 12 conditions × 5 replicates × 2 agents × 1 problem`, where it is that plain."""
    study = plan.study
    agents = {len(agents_of(study, condition)) for condition in plan.admissible}
    problems = {len(problems_of(study, condition)) for condition in plan.admissible}
    if len(agents) != 1 or len(problems) != 1:
        return f"{plan.runs:,}"
    terms = [
        count(len(plan.admissible), "condition"),
        count(replicates_of(study), "replicate"),
        count(agents.pop(), "agent"),
        count(problems.pop(), "problem"),
    ]
    return f"{plan.runs:,} = {' × '.join(terms)}"


def _stand_ins(plan: Plan) -> list[str]:
    """The names that are used where the study names no agent or no problem."""
    met = {
        name
        for condition in plan.admissible
        for name in (*agents_of(plan.study, condition), *problems_of(plan.study, condition))
    }
    return [name for name in (DEFAULT_AGENT, DEFAULT_PROBLEM) if name in met]


def _print_conditions(plan: Plan) -> None:
    factors = [(factor.name, _level_names(factor)) for factor in plan.study.factors]
    blocks = [block.name for block in plan.study.blocks]
    shown = plan.conditions[:SHOWN_CONDITIONS]
    remarks = any(condition.constraint_messages for condition in shown)
    rules = {message_of(rule): rule.constraint_id for rule in plan.study.constraints}
    print_table(
        [
            "condition",
            *blocks,
            *(name for name, _ in factors),
            *(["remark"] if remarks else []),
        ],
        (
            [
                condition.condition_id,
                *(condition.block_assignments.get(name) for name in blocks),
                *(_level(condition.factor_assignments.get(name), names) for name, names in factors),
                *([_remark(condition, rules)] if remarks else []),
            ]
            for condition in shown
        ),
        total=len(plan.conditions),
        has_key=True,
        has_remark=remarks,
    )


def _level_names(factor: Factor) -> dict[str, str]:
    """The names of a factor's levels by value: prompts, say, are better told apart by them."""
    return {canonical_json(level.value): level.name for level in factor.levels}


def _level(value: Any, names: Mapping[str, str]) -> Any:
    return names.get(canonical_json(value), value)


def _remark(condition: Condition, rules: Mapping[str, str]) -> str:
    if not condition.constraint_messages:
        return ""
    verb = "warning" if condition.admissible else "never runs"
    return f"{verb}: {', '.join(rules[message] for message in condition.constraint_messages)}"


def balance_lines(report: BalanceReport, tied: Mapping[str, str] | None = None) -> list[str]:
    """What there is to say of the balance; never a claim about levels that were not counted.

    tied: factors that move in step with another by intent, which need only one line
    """
    tied = tied or {}
    balance = report.after
    lines = [
        f"{name} moves with {leader}: their effects can't be told apart"
        for name, leader in tied.items()
    ]
    if balance.is_even:
        lines.append("even: every level, and every pair of levels, occurs equally often")
    lines += _uneven(balance, tied)
    losses = [loss for loss in report.lost_cells if not tied.keys() & loss.levels.keys()]
    lines += [str(loss) for loss in losses[:MOST_LOSSES]]
    more = len(losses) + report.lost_cells_left_out - MOST_LOSSES
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
        lines.append(f"{balance.pairs_left_out:,} pairs of factors were not looked at: too many")
    return [f"balance  {line}" for line in lines]


def _uneven(balance: DesignBalance, tied: Mapping[str, str]) -> Iterator[str]:
    for factor in balance.factors:
        if factor.counts and not factor.is_even and factor.name not in tied:
            counts = [*factor.counts.items(), *((level, 0) for level in factor.unused)]
            (level, rows), *others = counts
            first = f"{level} in {count(rows, 'condition')}"
            yield f"{factor.name}: {', '.join([first, *(f'{at} in {n:,}' for at, n in others)])}"
    for pair in balance.pairs:
        if tied.keys() & {pair.first, pair.second}:
            continue
        both = f"{pair.first} and {pair.second}"
        if pair.is_confounded:
            yield f"{both} can't be told apart: they always change together"
        elif pair.association >= WEAK_ASSOCIATION:
            yield f"{both} go together ({pair.association:.2f}; 0 is not at all, 1 is always)"


def _spell_planned(test: PlannedTest) -> str:
    what = f"{' × '.join(test.variables) or 'no variable'} on {test.outcome}"
    head = f"{test.hypothesis_id} ({what})"
    if test.reason:
        return f"{head}: not tested: {test.reason}"
    parts = [f"{head}: {test.claim}, by {test.test}"]
    parts += [f"beside it {', '.join(test.beside)}"] if test.beside else []
    parts += [f"only the runs of {spell_agents(test.agents)}"] if test.agents else []
    if test.analysis_plan_id is None:
        parts.append("exploratory, as no plan names it")
    else:
        kind = "exploratory, " if test.is_exploratory else ""
        parts.append(f"{kind}plan {test.analysis_plan_id}")
    return "; ".join(parts)


def _print_power(power: HypothesisPower, replicates: int) -> None:
    what = " × ".join(power.variables) or "no variable"
    head = f"power    {power.hypothesis_id} ({what} on {power.outcome or 'an outcome'})"
    if power.power is None:
        print_wrapped(f"{head}: not computed: {power.reason}", "", INDENT)
        _print_needed(power, replicates)
        return
    groups = ", ".join(f"{runs:,} with {name}" for name, runs in power.groups.items())
    print_wrapped(f"{head}: {power.power:.2f} by {power.test}", "", INDENT)
    print_wrapped(_in_plain_words(power), INDENT)
    print_wrapped(f"runs: {groups}", INDENT)
    if power.power < TARGET_POWER:
        _print_needed(power, replicates)
    print_wrapped(power.assumption, INDENT)


def _in_plain_words(power: HypothesisPower) -> str:
    share = round(100 * (power.power or 0))
    often = {0: "hardly any", 100: "nearly all"}.get(share, f"about {share}")
    return f"if things are as assumed, {often} of 100 such studies would find it"


def _print_needed(power: HypothesisPower, replicates: int) -> None:
    if power.needed_replicates is not None:
        needed = f"a power of {TARGET_POWER} needs {power.needed_replicates:,} replicates"
        print_wrapped(f"{needed} (the plan has {replicates:,})", INDENT)


def print_changes(new: Plan, old: Plan) -> None:
    """What a change of the study keeps."""
    click.echo()
    for what, counts in new.changes_from(old).items():
        click.echo(
            f"{what:10}  {counts['kept']:,} kept, {counts['new']:,} new, "
            f"{counts['dropped']:,} dropped"
        )
    if new.study.study_id != old.study.study_id:
        names = f"'{old.study.study_id}' became '{new.study.study_id}'"
        print_wrapped(f"study_id is part of every run's id: {names}, so no run stays")

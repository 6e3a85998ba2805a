"""`fairtrial plan`: what a study will run, and what that can show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import (
    json_option,
    print_facts,
    print_json,
    print_table,
    print_wrapped,
    study_argument,
    warn,
)
from fairtrial.design.balance import BalanceReport, balance_report
from fairtrial.design.build import conditions_of, design_table
from fairtrial.design.schedule import (
    agents_of,
    count_runs,
    plan_runs,
    problems_of,
    refuse_collisions,
    replicates_of,
)
from fairtrial.loading import read_study
from fairtrial.model.conditions import Condition
from fairtrial.model.study import Study
from fairtrial.prospect import HypothesisPower, hypothesis_power
from fairtrial.tables.canonical import PLAN_COLUMNS, condition_columns, condition_rows, plan_rows
from fairtrial.tables.files import cell, check_format, write_table

SHOWN_CONDITIONS = 16
MOST_LOSSES = 5
WEAK_ASSOCIATION = 0.1
"""Associations of two factors below this are not worth a line."""
INDENT = " " * 9


@click.command(
    name="plan",
    epilog="Example: fairtrial plan study.yaml --out conditions.csv --runs runs.csv",
    short_help="Show what a study will run, and what it can find.",
)
@study_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the table of conditions to a .csv, .json or .jsonl.",
)
@click.option(
    "--runs",
    "runs_out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the planned runs, with ids and seeds, to a .csv, .json or .jsonl.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="OLD",
    help="Say which conditions and runs of another version of the study stay.",
)
@json_option
def command(
    study: Path, out: Path | None, runs_out: Path | None, against: Path | None, as_json: bool
) -> None:
    """Show what a study will run, and what that can show.

    Conditions, number of runs, balance, aliasing, and the power of the plan for hypotheses that
    state a minimum effect of interest, with the assumptions it rests on.
    """
    for target in (out, runs_out):
        if target is not None:
            check_format(target)
    loaded = read_study(study)
    plan = Plan(loaded.study)
    older = None if against is None else Plan(read_study(against).study)
    written = _write(plan, out, runs_out)
    if as_json:
        print_json(_as_json(plan, older, written, loaded.warning_lines()))
        return
    warn(loaded.warning_lines())
    _print(plan)
    if older is not None:
        _print_changes(plan, older)
    for path in written:
        click.echo(f"wrote {path}")


class Plan:
    """A study with its conditions, and what can be said of them before anything is run."""

    def __init__(self, study: Study) -> None:
        self.study = study
        table = design_table(study)
        self.conditions = conditions_of(study, table)
        self.facts = table.facts
        self.runs = count_runs(study, self.conditions)
        refuse_collisions(study, self.conditions)

    @property
    def admissible(self) -> list[Condition]:
        return [condition for condition in self.conditions if condition.admissible]

    def condition_ids(self) -> set[str]:
        return {condition.condition_id for condition in self.conditions}

    def run_ids(self) -> set[str]:
        return {run.run_id for run in plan_runs(self.study, self.conditions)}


def _write(plan: Plan, out: Path | None, runs_out: Path | None) -> list[str]:
    if out is not None:
        rows = condition_rows(plan.study, plan.conditions)
        write_table(out, condition_columns(plan.study), rows)
    if runs_out is not None:
        write_table(runs_out, PLAN_COLUMNS, plan_rows(plan_runs(plan.study, plan.conditions)))
    return [str(path) for path in (out, runs_out) if path is not None]


def _changes(new: Plan, old: Plan) -> dict[str, dict[str, int]]:
    """How many conditions and runs of `old` stay, go, and are added."""
    pairs = {
        "conditions": (new.condition_ids(), old.condition_ids()),
        "runs": (new.run_ids(), old.run_ids()),
    }
    return {
        what: {"kept": len(now & then), "new": len(now - then), "dropped": len(then - now)}
        for what, (now, then) in pairs.items()
    }


def _as_json(
    plan: Plan, older: Plan | None, written: Sequence[str], warnings: Sequence[str]
) -> dict[str, Any]:
    study = plan.study
    return {
        "ok": True,
        "study_id": study.study_id,
        "title": study.title,
        "design": str(study.design_spec.kind),
        "conditions": len(plan.conditions),
        "admissible": len(plan.admissible),
        "runs": plan.runs,
        "replicates": replicates_of(study),
        "facts": dict(plan.facts),
        "balance": balance_report(study, plan.conditions).to_dict(),
        "power": [power.to_dict() for power in hypothesis_power(study, plan.conditions)],
        "changes": None if older is None else _changes(plan, older),
        "written": list(written),
        "warnings": list(warnings),
        "condition_table": list(condition_rows(study, plan.conditions)),
    }


def _print(plan: Plan) -> None:
    study = plan.study
    click.echo(click.style(f"{study.study_id}: {study.title}", bold=True))
    excluded = len(plan.conditions) - len(plan.admissible)
    left_out = f", {excluded:,} of them excluded by constraints" if excluded else ""
    click.echo(f"design  {study.design_spec.kind}: {len(plan.conditions):,} conditions{left_out}")
    click.echo(f"runs    {_run_sum(plan)}")
    click.echo()
    _print_conditions(plan)
    print_facts(plan.facts)
    click.echo()
    for line in balance_lines(balance_report(study, plan.conditions)):
        click.echo(line)
    for power in hypothesis_power(study, plan.conditions):
        click.echo()
        _print_power(power, replicates_of(study))


def _run_sum(plan: Plan) -> str:
    """`120 = 12 conditions × 5 replicates × 2 agents × 1 problem`, where it is that plain."""
    study = plan.study
    agents = {len(agents_of(study, condition)) for condition in plan.admissible}
    problems = {len(problems_of(study, condition)) for condition in plan.admissible}
    if len(agents) != 1 or len(problems) != 1:
        return f"{plan.runs:,}"
    factors = [
        (len(plan.admissible), "condition"),
        (replicates_of(study), "replicate"),
        (agents.pop(), "agent"),
        (problems.pop(), "problem"),
    ]
    terms = [f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in factors]
    return f"{plan.runs:,} = {' × '.join(terms)}"


def _print_conditions(plan: Plan) -> None:
    names = [factor.name for factor in plan.study.factors]
    blocks = [block.name for block in plan.study.blocks]
    shown = plan.conditions[:SHOWN_CONDITIONS]
    notes = any(condition.constraint_messages for condition in shown)
    print_table(
        ["condition", *blocks, *names, *(["remark"] if notes else [])],
        (
            [
                condition.condition_id,
                *(cell(condition.block_assignments.get(name)) for name in blocks),
                *(cell(condition.factor_assignments.get(name)) for name in names),
                *([_remark(condition)] if notes else []),
            ]
            for condition in shown
        ),
    )
    if len(plan.conditions) > len(shown):
        more = len(plan.conditions) - len(shown)
        click.echo(f"... and {more:,} more; --out FILE writes them all")


def _remark(condition: Condition) -> str:
    if not condition.constraint_messages:
        return ""
    verb = "warning" if condition.admissible else "never runs"
    names = [message.partition(":")[0] for message in condition.constraint_messages]
    return f"{verb}: {', '.join(names)}"


def balance_lines(report: BalanceReport) -> list[str]:
    """What there is to say of the balance; never a claim about levels that were not counted."""
    balance = report.after
    lines = []
    if balance.is_even:
        lines.append("even: every level, and every pair of levels, occurs equally often")
    for factor in balance.factors:
        if factor.counts and not factor.is_even:
            counts = [*factor.counts.items(), *((level, 0) for level in factor.unused)]
            lines.append(f"{factor.name}: {', '.join(f'{level} {n:,}' for level, n in counts)}")
    for pair in balance.pairs:
        both = f"{pair.first} and {pair.second}"
        if pair.is_confounded:
            lines.append(f"{both} can't be told apart")
        elif pair.association >= WEAK_ASSOCIATION:
            lines.append(f"{both} go together (association {pair.association:.2f})")
    lines += [str(loss) for loss in report.lost_cells[:MOST_LOSSES]]
    more = len(report.lost_cells) + report.lost_cells_left_out - MOST_LOSSES
    if more > 0:
        lines.append(f"... and {more:,} more pairs of levels that never run")
    if not lines:
        is_even = all(factor.is_even for factor in balance.factors)
        text = "every level occurs equally often" if is_even else "values are spread over ranges"
        if balance.pairs:
            text += f"; no two factors go together (associations are below {WEAK_ASSOCIATION:g})"
        lines.append(text)
    if balance.pairs_left_out:
        lines.append(f"{balance.pairs_left_out:,} pairs of factors were not looked at: too many")
    return [f"balance  {line}" for line in lines]


def _print_power(power: HypothesisPower, replicates: int) -> None:
    what = " × ".join(power.variables)
    head = f"power    {power.hypothesis_id} ({what} on {power.outcome or 'an outcome'})"
    if power.power is None:
        print_wrapped(f"{head}: not computed: {power.reason}", "", INDENT)
        _print_needed(power, replicates)
        return
    groups = ", ".join(f"{name} {runs:,}" for name, runs in power.groups.items())
    click.echo(f"{head}: {power.power:.2f} by {power.test}")
    print_wrapped(f"runs: {groups}", INDENT)
    if power.power < 0.8:
        _print_needed(power, replicates)
    print_wrapped(power.assumption, INDENT)


def _print_needed(power: HypothesisPower, replicates: int) -> None:
    if power.needed_replicates is not None:
        needed = f"a power of 0.8 needs {power.needed_replicates:,} replicates"
        print_wrapped(f"{needed} (the plan has {replicates:,})", INDENT)


def _print_changes(new: Plan, old: Plan) -> None:
    click.echo()
    for what, counts in _changes(new, old).items():
        click.echo(
            f"{what:10}  {counts['kept']:,} kept, {counts['new']:,} new, "
            f"{counts['dropped']:,} dropped"
        )

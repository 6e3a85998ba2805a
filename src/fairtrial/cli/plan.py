"""`fairtrial plan`: what a study will run, and what that can show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import json_option, print_json, study_argument, warn
from fairtrial.cli.output_paths import refuse_overwriting
from fairtrial.cli.plan_data import Plan
from fairtrial.cli.plan_text import print_changes, print_plan
from fairtrial.core import check_format, write_table
from fairtrial.study import (
    PLAN_COLUMNS,
    balance_report,
    claim_warnings,
    condition_columns,
    condition_rows,
    hypothesis_power,
    plan_rows,
    plan_runs,
    planned_tests,
    read_study,
    replicates_of,
)


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

    Conditions, number of runs, balance, aliasing, each hypothesis as it will be tested, and the
    power of the plan for those that state a minimum effect of interest, with its assumptions.
    """
    for target in (out, runs_out):
        if target is not None:
            check_format(target)
    refuse_overwriting({"--out": out, "--runs": runs_out}, [study, against])
    loaded = read_study(study)
    plan = Plan(loaded.study)
    older = None if against is None else Plan(read_study(against).study)
    written = _write(plan, out, runs_out)
    warnings = [*loaded.warning_lines(), *loaded.unbound_lines()]
    if as_json:
        print_json(_as_json(plan, older, written, warnings))
        return
    warn([*warnings, *claim_warnings(plan.study, plan.conditions)])
    print_plan(plan)
    if older is not None:
        print_changes(plan, older)
    for path in written:
        click.echo(f"wrote {path}")


def _write(plan: Plan, out: Path | None, runs_out: Path | None) -> list[str]:
    if out is not None:
        rows = condition_rows(plan.study, plan.conditions)
        write_table(out, condition_columns(plan.study), rows)
    if runs_out is not None:
        write_table(runs_out, PLAN_COLUMNS, plan_rows(plan_runs(plan.study, plan.conditions)))
    return [str(path) for path in (out, runs_out) if path is not None]


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
        "tests": [test.to_dict() for test in planned_tests(study, plan.conditions)],
        "power": [power.to_dict() for power in hypothesis_power(study, plan.conditions)],
        "changes": None if older is None else plan.changes_from(older),
        "written": list(written),
        "warnings": [*warnings, *claim_warnings(study, plan.conditions)],
        "condition_table": list(condition_rows(study, plan.conditions)),
    }

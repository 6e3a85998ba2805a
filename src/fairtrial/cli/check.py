"""`fairtrial check`: find the mistakes in a study or problem file."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fairtrial.arena import problem_files
from fairtrial.cli.check_problem import check_problem
from fairtrial.cli.output import count, json_option, print_json, shown_path, warn
from fairtrial.core import StudyError
from fairtrial.study import Study, files, report, runner


@click.command(
    name="check",
    epilog="Example: fairtrial check study.yaml",
    short_help="Find every mistake in a study or problem file.",
)
@click.argument("study", type=click.Path(path_type=Path), metavar="FILE")
@json_option
def command(study: Path, as_json: bool) -> None:
    """Find every mistake in a study or problem file, with its line and what was expected there.

    Exit code 0 if there are none, 2 if there are any. What plug-ins need and this machine lacks is
    a mistake too: a key, a program, a file. Your own functions are not imported. Warnings are for
    hypotheses that won't be tested or may be meant differently than they will be tested, and for
    agents and problems without a binding. For a problem file, the files and input generators that
    it names must exist; nothing is run.
    """
    try:
        loaded = files.read_study(study)
    except StudyError:
        if not problem_files.is_problem_file(study):
            raise
        check_problem(study, as_json=as_json)
        return
    plan = report.summarize_plan(loaded.study, check_run_ids=False)
    missing = runner.find_plugin_mistakes(loaded.study, plan.conditions)
    if missing:
        raise loaded.locate(StudyError(missing))
    warnings = [
        *loaded.warning_lines(),
        *loaded.unbound_lines(),
        *plan.warnings,
        *(f"{name} will not be tested: {'; '.join(why)}" for name, why in plan.untested.items()),
    ]
    if as_json:
        print_json(
            {
                "ok": True,
                "study_id": loaded.study.study_id,
                "conditions": len(plan.conditions),
                "runs": plan.runs,
                "warnings": warnings,
                "untested": list(plan.untested),
            }
        )
        return
    warn(warnings)
    remarks = f", {count(len(warnings), 'warning')}" if warnings else ""
    remarks += f": {', '.join(plan.untested)} will not be tested" if plan.untested else ""
    size = f"{count(len(plan.conditions), 'condition')}, {count(plan.runs, 'run')}"
    click.echo(f"{study}: no mistakes{remarks}; {size}")
    if _names_own_functions(loaded.study):
        command = f"fairtrial run {shlex.quote(shown_path(study))} --dry-run"
        click.echo(f"next:    {command}  # also imports your functions")


def _names_own_functions(study: Study) -> bool:
    """Return whether agents or problems are given as `module:function`."""
    uses = [binding.use for binding in study.agents.values()]
    return any(":" in use for use in uses) or study.names_problem_code

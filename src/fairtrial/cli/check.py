"""`fairtrial check`: is this study or problem file all right?"""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.arena import is_problem_file
from fairtrial.cli.check_problem import check_problem
from fairtrial.cli.output import count, json_option, print_json, warn
from fairtrial.core import StudyError
from fairtrial.study import (
    build_design,
    claim_warnings,
    count_runs,
    foresee,
    planned_tests,
    read_study,
    untested_claims,
)


@click.command(
    name="check",
    epilog="Example: fairtrial check study.yaml",
    short_help="Find every mistake in a study or problem file.",
)
@click.argument("study", type=click.Path(path_type=Path), metavar="FILE")
@json_option
def command(study: Path, as_json: bool) -> None:
    """Find every mistake in a study or problem file, with its line and what was expected there.

    Exit code 0 if there is none, 2 if there are any. What plug-ins miss on this machine counts: a
    key, a program, a file; your own functions are not imported. Claims that won't be tested, or may
    be meant otherwise than they will be, get a warning; so do agents and problems that nothing is
    bound to. Of a problem, its files and what makes its inputs are looked for; nothing is run.
    """
    try:
        loaded = read_study(study)
    except StudyError:
        if not is_problem_file(study):
            raise
        check_problem(study, as_json=as_json)
        return
    conditions = build_design(loaded.study)
    runs = count_runs(loaded.study, conditions)
    missing = foresee(loaded.study, conditions)
    if missing:
        raise loaded.locate(StudyError(missing))
    untested = untested_claims(planned_tests(loaded.study, conditions))
    warnings = [
        *loaded.warning_lines(),
        *loaded.unbound_lines(),
        *claim_warnings(loaded.study, conditions),
        *(f"{name} will not be tested: {'; '.join(why)}" for name, why in untested.items()),
    ]
    if as_json:
        print_json(
            {
                "ok": True,
                "study_id": loaded.study.study_id,
                "conditions": len(conditions),
                "runs": runs,
                "warnings": warnings,
                "untested": list(untested),
            }
        )
        return
    warn(warnings)
    told = f", {count(len(warnings), 'warning')}" if warnings else ""
    told += f": {', '.join(untested)} will not be tested" if untested else ""
    size = f"{count(len(conditions), 'condition')}, {count(runs, 'run')}"
    click.echo(f"{study}: no mistakes{told}; {size}")

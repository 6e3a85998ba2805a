"""`fairtrial check`: is this study file all right?"""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import count, json_option, print_json, study_argument, warn
from fairtrial.design.build import build_design
from fairtrial.design.schedule import count_runs
from fairtrial.loading import read_study


@click.command(
    name="check",
    epilog="Example: fairtrial check study.yaml",
    short_help="Find every mistake in a study file.",
)
@study_argument
@json_option
def command(study: Path, as_json: bool) -> None:
    """Find every mistake in a study file, with its line and what was expected there.

    Exit code 0 if there is none, 2 if there are any.
    """
    loaded = read_study(study)
    conditions = build_design(loaded.study)
    runs = count_runs(loaded.study, conditions)
    if as_json:
        print_json(
            {
                "ok": True,
                "study_id": loaded.study.study_id,
                "conditions": len(conditions),
                "runs": runs,
                "warnings": loaded.warning_lines(),
            }
        )
        return
    warn(loaded.warning_lines())
    click.echo(f"{study}: no mistakes; {count(len(conditions), 'condition')}, {count(runs, 'run')}")

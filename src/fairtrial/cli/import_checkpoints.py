"""`fairtrial import-checkpoints`: take over the results of design-research-experiments."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import replace
from pathlib import Path

import click

from fairtrial.cli.output import (
    count,
    json_option,
    path_option,
    print_json,
    shown_path,
    study_argument,
    warn,
)
from fairtrial.compat import import_checkpoints
from fairtrial.study import files, open_results


@click.command(
    name="import-checkpoints",
    epilog="Example: fairtrial import-checkpoints study.yaml artifacts/earlier",
    short_help="Take over results of design-research-experiments.",
)
@study_argument
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@path_option("--output", metavar="DIR", help="Output directory; default: the study's.")
@json_option
def command(study: Path, folder: Path, output: Path | None, as_json: bool) -> None:
    """Take over the results that design-research-experiments wrote to FOLDER.

    They are stored in the study's output directory, which must be another one, as if fairtrial had
    made these runs; `fairtrial resume STUDY` does what is left. The study's hypotheses become
    exploratory.
    """
    loaded = files.read_study(study)
    warn(loaded.warning_lines())
    target = loaded.study if output is None else replace(loaded.study, output_dir=output)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = import_checkpoints(target, folder)
    warn([str(warning.message) for warning in caught])
    place = shown_path(Path(target.output_dir or "."))
    with open_results(Path(target.output_dir or ".")) as stored:
        planned = stored.reader.summary().planned
    if as_json:
        facts = {"imported": len(results), "planned": planned, "output_dir": place}
        print_json({"ok": True, **facts})
        return
    click.echo(f"{count(len(results), 'result')} of {count(planned, 'run')} imported to {place}")
    words = ["fairtrial", "resume", shown_path(study)]
    words += [] if output is None else ["--output", shown_path(output)]
    click.echo(f"next:    {shlex.join(words)}")

"""`fairtrial schema`: print the JSON Schema of study or problem files, for editors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fairtrial.arena import problem_schema
from fairtrial.cli.output import json_option, path_option, print_json
from fairtrial.core import atomic_write
from fairtrial.study import files


@click.command(
    name="schema",
    epilog="Example: fairtrial schema --out study.schema.json",
    short_help="Print the JSON Schema of study files.",
)
@click.option("--problem", is_flag=True, help="Print the schema of code problems instead.")
@path_option("--out", metavar="FILE", help="Write it to a file.")
@json_option
def command(problem: bool, out: Path | None, as_json: bool) -> None:
    """Print the JSON Schema of study files, or of code problems.

    An editor with a YAML language server checks and completes a study whose first line is
    `# yaml-language-server: $schema=study.schema.json`.
    """
    schema = problem_schema() if problem else files.study_schema()
    if out is None:
        print_json(schema)
        return
    with atomic_write(out) as file:
        json.dump(schema, file, indent=2, ensure_ascii=False)
        file.write("\n")
    if as_json:
        print_json({"ok": True, "written": str(out)})
    else:
        click.echo(f"wrote {out}")

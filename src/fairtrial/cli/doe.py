"""`fairtrial doe`: generate a design table without a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import (
    json_option,
    path_option,
    print_facts,
    print_json,
    print_wrapped,
    warn,
)
from fairtrial.cli.output_paths import refuse_overwriting
from fairtrial.cli.table import print_table
from fairtrial.core import FieldPath, Mistake, StudyError, describe_value, documents, table_files
from fairtrial.study import DesignKind, design, generate_doe

SHOWN_ROWS = 40
EXAMPLE_HINT = """write it like '{"x": [1, 2], "y": ["a", "b"]}'"""
KINDS = ", ".join(kind.value for kind in DesignKind)
ALIASES = ", ".join(f"{alias} = {kind.value}" for alias, kind in design.DESIGN_ALIASES.items())
FLAGS = {
    "kind": "--kind",
    "factors": "--factors",
    "n_samples": "--n",
    "seed": "--seed",
    "replicates": "--replicates",
    "center_points": "--center-points",
    "block_randomization_key": "--within",
    "options": "--option",
    "matrix_path": "--option matrix_path",
}
"""The options that set the fields of a design."""


@click.command(
    name="doe",
    epilog="""Examples:

\b
fairtrial doe --kind full --factors '{"tone": ["plain", "warm"], "n": [1, 5]}'
fairtrial doe --kind lhs --factors '{"rate": [0.1, 0.9]}' --n 8 --out d.csv
fairtrial doe --kind frac2 --factors @factors.json --option resolution=V""",
    short_help="Generate a design table without a study.",
)
@click.option("--kind", required=True, help=f"One of {KINDS}; or, for short, {ALIASES}.")
@click.option(
    "--factors",
    required=True,
    metavar="JSON",
    help="A mapping of names to levels, or to [low, high] for designs that sample a range; "
    "@FILE reads it from a file.",
)
@click.option(
    "--n", "n_samples", type=int, metavar="N", help="Number of rows, for designs that need it."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option("--replicates", type=int, default=1, show_default=True, help="Repeat all rows.")
@click.option(
    "--center-points", type=int, default=0, show_default=True, help="Number of center points."
)
@click.option("--randomize/--no-randomize", default=True, help="Shuffle the rows.  [default: yes]")
@click.option(
    "--within",
    "block_randomization_key",
    metavar="FACTOR",
    help="Shuffle within the values of this factor.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the design, such as resolution=V; the value is JSON or else text.",
)
@path_option("--out", metavar="FILE", help="Write a .csv, .json or .jsonl.")
@json_option
def command(
    factors: str, options: tuple[str, ...], out: Path | None, as_json: bool, **settings: Any
) -> None:
    """Generate a design table without a study, and show how balanced it is."""
    # The other options are named like the parameters of `generate_doe`.
    if out is not None:
        table_files.check_format(out)
        refuse_overwriting({"--out": out}, [Path(factors[1:]) if factors[:1] == "@" else None])
    try:
        design = generate_doe(
            factors=_read_factors(factors),
            options=dict(_read_option(text) for text in options),
            **settings,
        )
    except StudyError as error:
        mistakes = [_name_flag(mistake) for mistake in error.mistakes]
        raise StudyError(mistakes, source=error.source) from None
    rows, columns = design["design"], design["summary"]["factors"]
    if out is not None:
        table_files.write_table(out, columns, rows)
    if as_json:
        print_json({"ok": True, **design, **({"written": str(out)} if out else {})})
        return
    warn(design["warnings"])
    print_wrapped(design["interpretation"])
    if out is None:
        click.echo()
        shown = ([row[name] for name in columns] for row in rows[:SHOWN_ROWS])
        print_table(columns, shown, total=len(rows))
    print_facts(design["facts"])
    if out is not None:
        click.echo(f"wrote {out}")


def _name_flag(mistake: Mistake) -> Mistake:
    """Return a mistake with the option in place of the field: `--n` for `n_samples`."""
    flag = FLAGS.get(str(mistake.path[0])) if mistake.path else None
    if flag is None:
        return mistake
    rest = replace(mistake, path=mistake.path[1:]).field
    return replace(mistake, path=(f"{flag} {rest}" if rest else flag,))


def _read_factors(text: str) -> Any:
    if not text.startswith("@"):
        hint = f"@{text} reads a file" if text.endswith(".json") else EXAMPLE_HINT
        return _read_json(text, ("--factors",), hint)
    try:
        return _read_json(documents.read_text(Path(text[1:])), (), EXAMPLE_HINT)
    except StudyError as error:
        raise StudyError(error.mistakes, source=text[1:]) from None


def _read_json(text: str, path: FieldPath, hint: str = "") -> Any:
    """Read JSON with the checks of study files: no repeated keys, no NaN, no infinities."""
    try:
        root = documents.compose_json(text)
    except StudyError as error:
        raise StudyError(
            [replace(mistake, path=path, hint=hint or mistake.hint) for mistake in error.mistakes]
        ) from None
    if root is None:
        raise StudyError(Mistake(path, "is empty", hint))
    document = documents.Document(root)
    if document.mistakes:
        raise StudyError([mistake.under(path) for mistake in document.mistakes])
    return document.data


def _read_option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise StudyError(Mistake(("--option",), f"expected NAME=VALUE, got {describe_value(text)}"))
    try:
        documents.compose_json(value)
    except StudyError:
        return name, value
    return name, _read_json(value, ("options", name)) if value.strip() else value

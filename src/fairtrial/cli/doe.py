"""`fairtrial doe`: a design table without a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import json_option, print_facts, print_json, print_wrapped, warn
from fairtrial.cli.output_paths import refuse_overwriting
from fairtrial.cli.table import print_table
from fairtrial.core import (
    Document,
    Mistake,
    Place,
    StudyError,
    check_format,
    compose_json,
    describe,
    read_text,
    spell_path,
    write_table,
)
from fairtrial.study import DESIGN_ALIASES, DesignKind, generate_doe

SHOWN_ROWS = 40
LIKE = """write it like '{"x": [1, 2], "y": ["a", "b"]}'"""
KINDS = ", ".join(kind.value for kind in DesignKind)
ALIASES = ", ".join(f"{alias} = {kind.value}" for alias, kind in DESIGN_ALIASES.items())
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
"""What the fields of a design are called here."""


@click.command(
    name="doe",
    epilog="""Examples:

\b
fairtrial doe --kind full --factors '{"tone": ["plain", "warm"], "n": [1, 5]}'
fairtrial doe --kind lhs --factors '{"rate": [0.1, 0.9]}' --n 8 --out d.csv
fairtrial doe --kind frac2 --factors @factors.json --option resolution=V""",
    short_help="Make a design table without a study.",
)
@click.option("--kind", required=True, help=f"One of {KINDS}; or, for short, {ALIASES}.")
@click.option(
    "--factors",
    required=True,
    metavar="JSON",
    help="A mapping of names to levels, or to [low, high] for designs that sample a range; "
    "@FILE reads it from a file.",
)
@click.option("--n", "n_samples", type=int, metavar="N", help="Rows, for designs that ask for it.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another one, other rows.")
@click.option("--replicates", type=int, default=1, show_default=True, help="Repeat all rows.")
@click.option("--center-points", type=int, default=0, show_default=True, help="Rows at the centre.")
@click.option("--randomize/--no-randomize", default=True, help="Shuffle the rows.  [default: yes]")
@click.option("--within", metavar="FACTOR", help="Shuffle within the values of this factor.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the design, such as resolution=V; the value is read as JSON where it is.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write a .csv, .json or .jsonl."
)
@json_option
def command(
    kind: str,
    factors: str,
    n_samples: int | None,
    seed: int,
    replicates: int,
    center_points: int,
    randomize: bool,
    within: str | None,
    options: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Make a design table without a study, and say how balanced it is."""
    if out is not None:
        check_format(out)
        refuse_overwriting({"--out": out}, [Path(factors[1:]) if factors[:1] == "@" else None])
    try:
        made = generate_doe(
            kind=kind,
            factors=_read_factors(factors),
            n_samples=n_samples,
            seed=seed,
            center_points=center_points,
            replicates=replicates,
            randomize=randomize,
            block_randomization_key=within,
            options=dict(_read_option(text) for text in options),
        )
    except StudyError as error:
        found = [_by_flag(mistake) for mistake in error.mistakes]
        raise StudyError(found, source=error.source) from None
    rows, columns = made["design"], made["summary"]["factors"]
    if out is not None:
        write_table(out, columns, rows)
    if as_json:
        print_json({"ok": True, **made, **({"written": str(out)} if out else {})})
        return
    warn(made["warnings"])
    print_wrapped(made["interpretation"])
    if out is None:
        click.echo()
        shown = ([row[name] for name in columns] for row in rows[:SHOWN_ROWS])
        print_table(columns, shown, total=len(rows))
    print_facts(made["facts"])
    if out is not None:
        click.echo(f"wrote {out}")


def _by_flag(mistake: Mistake) -> Mistake:
    """The same mistake by what a person typed: `--n`, where a study has `n_samples`."""
    field, *rest = mistake.path or ("",)
    flag = FLAGS.get(str(field))
    if flag is None:
        return mistake
    name = f"{flag} {spell_path(tuple(rest))}" if rest else flag
    return replace(mistake, path=(name,))


def _read_factors(text: str) -> Any:
    if not text.startswith("@"):
        hint = f"@{text} reads a file" if text.endswith(".json") else LIKE
        return _read_json(text, ("--factors",), hint)
    try:
        return _read_json(read_text(Path(text[1:])), (), LIKE)
    except StudyError as error:
        raise StudyError(error.mistakes, source=text[1:]) from None


def _read_json(text: str, path: Place, hint: str = "") -> Any:
    """A JSON text as it would be read in a study: no key twice, no NaN, nothing endless."""
    try:
        root = compose_json(text)
    except StudyError as error:
        raise StudyError(
            [replace(mistake, path=path, hint=hint or mistake.hint) for mistake in error.mistakes]
        ) from None
    if root is None:
        raise StudyError(Mistake(path, "is empty", hint))
    document = Document(root)
    if document.mistakes:
        raise StudyError([mistake.under(path) for mistake in document.mistakes])
    return document.data


def _read_option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise StudyError(Mistake(("--option",), f"expected NAME=VALUE, got {describe(text)}"))
    try:
        compose_json(value)
    except StudyError:
        return name, value
    return name, _read_json(value, ("options", name)) if value.strip() else value

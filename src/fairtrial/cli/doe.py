"""`fairtrial doe`: a design table without a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import json_option, print_facts, print_json, print_table, warn
from fairtrial.design.doe import generate_doe
from fairtrial.errors import Mistake, StudyError
from fairtrial.model.factors import DESIGN_ALIASES, DesignKind
from fairtrial.tables.files import cell, check_format, write_table

SHOWN_ROWS = 40
KINDS = ", ".join(kind.value for kind in DesignKind)
ALIASES = ", ".join(f"{alias} = {kind.value}" for alias, kind in DESIGN_ALIASES.items())


@click.command(
    name="doe",
    epilog="""Examples:

    fairtrial doe --kind frac2 --factors '{"a": [0, 1], "b": [0, 1], "c": [0, 1], "d": [0, 1]}'

    fairtrial doe --kind lhs --factors '{"rate": [0.1, 0.9]}' --n 8 --out design.csv""",
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
@click.option("--seed", type=int, default=0, show_default=True)
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
    rows, columns = made["design"], made["summary"]["factors"]
    if out is not None:
        write_table(out, columns, rows)
    if as_json:
        print_json({"ok": True, **made, **({"written": str(out)} if out else {})})
        return
    warn(made["warnings"])
    click.echo(made["interpretation"])
    if out is not None:
        click.echo(f"wrote {out}")
    else:
        click.echo()
        print_table(columns, ([cell(row[name]) for name in columns] for row in rows[:SHOWN_ROWS]))
        if len(rows) > SHOWN_ROWS:
            click.echo(f"... and {len(rows) - SHOWN_ROWS:,} more; --out FILE writes them all")
    print_facts(made["facts"])


def _read_factors(text: str) -> Any:
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StudyError(
                Mistake(("--factors",), f"{text[1:]} can't be read: {error}")
            ) from None
    try:
        return json.loads(text, object_pairs_hook=_refuse_repeated)
    except (ValueError, RecursionError) as error:
        if isinstance(error, StudyError):
            raise
        raise StudyError(
            Mistake(
                ("--factors",),
                f"is not JSON: {error}",
                """write it like '{"x": [1, 2], "y": ["a", "b"]}'""",
            )
        ) from None


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise StudyError(Mistake(("--factors", name), "is given twice"))
    return dict(pairs)


def _read_option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise StudyError(Mistake(("--option",), f"expected NAME=VALUE, got '{text}'"))
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value

"""How commands speak: JSON for programs, tables and lines for people."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

MOST_FACTS = 30
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
study_argument = click.argument("study", type=click.Path(path_type=Path), metavar="STUDY")


def print_json(value: Any) -> None:
    """`value` as indented JSON on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A plain table: as wide as a terminal allows, as wide as it needs to be elsewhere."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=index == 0)
    for row in rows:
        table.add_row(*(str(value) for value in row))
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = console.measure(table, options=console.options.update(width=9999)).maximum
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        click.echo(line.rstrip())


def print_wrapped(text: str, indent: str, further: str | None = None) -> None:
    """A sentence that may be long, folded to the terminal; `further` indents its later lines."""
    width = shutil.get_terminal_size().columns
    click.echo(click.wrap_text(text, width, indent, indent if further is None else further))


def note(text: str) -> None:
    """A line that isn't part of the result: warnings, where files went."""
    click.echo(text, err=True)


def warn(lines: Iterable[str]) -> None:
    """Warnings, one a line, on standard error."""
    for line in lines:
        note(f"{click.style('warning', fg='yellow', bold=True)}: {line}")


def print_facts(facts: Mapping[str, Any]) -> None:
    """What is to be known of a design: a line for each fact, a line for each entry of a list."""
    if not facts:
        return
    click.echo()
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        label = name.replace("_", " ").ljust(width)
        if isinstance(value, (list, tuple)):
            for index, item in enumerate(value[:MOST_FACTS]):
                click.echo(f"{label if index == 0 else ' ' * width}  {_fact(item)}")
            if len(value) > MOST_FACTS:
                more = len(value) - MOST_FACTS
                click.echo(f"{' ' * width}  ... and {more:,} more; --json prints them all")
        else:
            click.echo(f"{label}  {_fact(value)}")


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_fact(item)}" for key, item in value.items())
    return str(value)

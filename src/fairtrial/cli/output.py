"""Output of commands: JSON, wrapped text, notes and warnings."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from fairtrial.core import on_one_line

Command = TypeVar("Command", bound=Callable[..., Any])
MOST_FACTS = 30
REPORT_NAME = "report.md"
PAGE_NAME = "report.html"
LABELS = {"runs": "rows", "kept_runs": "kept rows", "aliases": "can't be told apart"}
"""Names of facts in text output, where they differ from the key: `runs` means agent runs there."""
MEANINGS = {
    ("resolution", "III"): ": main effects are mixed with two-factor interactions",
    ("resolution", "IV"): ": main effects are clear of two-factor interactions, which are mixed "
    "with each other",
    ("resolution", "V"): ": main effects and two-factor interactions are clear of each other",
    ("resolution", "full"): ": every combination is there, so nothing is mixed",
}
_NO_TEXT = re.compile("[\ud800-\udfff]")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
folder_argument = click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
study_argument = click.argument("study", type=click.Path(path_type=Path), metavar="STUDY")


def path_option(*names: str, metavar: str, help: str) -> Callable[[Command], Command]:
    """Return an option that takes a path.

    names: the option, such as `--out`, and the parameter's name if it is another one
    metavar: what the help shows for the path: `FILE` or `DIR`
    """
    return click.option(*names, type=click.Path(path_type=Path), metavar=metavar, help=help)


def print_json(value: Any) -> None:
    """Print a value as indented JSON on standard output."""
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(value, indent=2, ensure_ascii=not is_unicode)
    # File names may contain lone surrogates, which only ASCII JSON can represent.
    click.echo(json.dumps(value, indent=2) if _NO_TEXT.search(text) else text)


def fold(text: str, indent: str = "", further: str | None = None) -> str:
    """Wrap a text at the terminal's width; `further` indents all lines but the first."""
    folded = textwrap.wrap(
        text,
        shutil.get_terminal_size().columns,
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(folded)


def print_wrapped(text: str, indent: str = "", further: str | None = None) -> None:
    """Print a text, wrapped at the width of the terminal."""
    click.echo(fold(text, indent, further))


def fold_command(command: str, label: str = "") -> str:
    """Return a label and a shell command; on a terminal, wrapped with backslashes at line ends."""
    room = shutil.get_terminal_size().columns - len(label)
    if not sys.stdout.isatty() or len(command) <= room:
        return label + command
    lines = [""]
    for word in map(shlex.quote, shlex.split(command)):
        if lines[-1] and len(lines[-1]) + len(word) + len("  \\") > room:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return label + (" \\\n" + " " * len(label)).join(lines)


def print_markdown(text: str) -> None:
    """Print Markdown; on a terminal, lines other than tables are wrapped."""
    if not sys.stdout.isatty():
        click.echo(text)
        return
    for line in text.splitlines():
        if line.startswith("|") or not line:
            click.echo(line)
        else:
            print_wrapped(line, "", "  " if line.startswith("- ") else "")


def count(number: int, what: str) -> str:
    """Return a number with its noun: `1 run`, `2,000 runs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def style(text: str, **how: Any) -> str:
    """Style a text for terminals, unless NO_COLOR is set; click strips styles elsewhere."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **how)


def shown_path(path: Path) -> str:
    """Return a path relative to the current directory if it is below it, else unchanged."""
    here = Path.cwd()
    shown = str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
    return f"./{shown}" if shown.startswith("-") else shown  # not to be read as an option


def harmless(text: str) -> str:
    """Replace control characters in a text from outside, if standard output is a terminal.

    They could hide lines of a diff from its reader, or change the terminal's settings.
    """
    if not sys.stdout.isatty():
        return text
    lines = [line.split("\t") for line in text.split("\n")]
    return "\n".join("\t".join(on_one_line(part, len(part)) for part in line) for line in lines)


def note(text: str) -> None:
    """Print a line that is not part of the result on standard error."""
    click.echo(text, err=True)


def warn(lines: Iterable[str]) -> None:
    """Print warnings on standard error, one per line."""
    for line in lines:
        note(labeled("warning", line, "yellow"))


def labeled(label: str, line: str, color: str) -> str:
    """Return `label: line` with a colored label; wrapped on a terminal, one line in logs."""
    text = f"{label}: {line}"
    text = fold(text, "", "  ") if sys.stderr.isatty() else text
    return style(label, fg=color, bold=True) + text.removeprefix(label)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print the properties of a design, one line per fact and per entry of a list."""
    if not facts:
        return
    click.echo()
    labels = {name: LABELS.get(name, name.replace("_", " ")) for name in facts}
    width = max(map(len, labels.values()))
    for name, value in facts.items():
        entries = list(value) if isinstance(value, (list, tuple)) else [value]
        shown = [_fact(entry) for entry in entries[:MOST_FACTS]] or ["none"]
        shown[0] += MEANINGS.get((name, shown[0]), "")
        if len(entries) > MOST_FACTS:
            shown.append(f"... and {len(entries) - MOST_FACTS:,} more; --json prints them all")
        for index, text in enumerate(shown):
            label = labels[name] if index == 0 else ""
            print_wrapped(f"{label.ljust(width)}  {text}", "", " " * (width + 2))


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_fact(item)}" for key, item in value.items())
    return str(value)

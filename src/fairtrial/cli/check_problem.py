"""`fairtrial check` of a problem file: is what it names there?"""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fairtrial.arena import locate, missing_parts, read_problem
from fairtrial.cli.output import count, print_json, shown_path, warn


def check_problem(path: Path, *, as_json: bool) -> None:
    """Find every mistake that can be seen in a problem file without running anything."""
    problem, doubts = read_problem(path)
    missing = missing_parts(problem)
    if missing:
        raise locate(path, missing)
    command = f"fairtrial evaluate {shlex.quote(shown_path(path))}"
    if as_json:
        facts = {"ok": True, "problem_id": problem.problem_id, "warnings": doubts}
        print_json({**facts, "check_more": command})
        return
    warn(doubts)
    told = f", {count(len(doubts), 'warning')}" if doubts else ""
    size = f"{count(len(problem.check), 'check')}, {count(len(problem.bench), 'benchmark')}"
    click.echo(f"{path}: no mistakes{told}; {size}; nothing was run")
    click.echo(f"next:    {command}  # tries it on the code as it is")

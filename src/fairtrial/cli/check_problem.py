"""`fairtrial check` for problem files."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fairtrial.arena import problem_files
from fairtrial.cli.output import count, print_json, shown_path, warn


def check_problem(path: Path, *, as_json: bool) -> None:
    """Check a problem file without running anything, and print the result.

    Raises `StudyError` with every mistake: of the file, and of what it names and doesn't exist.
    """
    problem, warnings = problem_files.check_problem_file(path)
    command = f"fairtrial evaluate {shlex.quote(shown_path(path))}"
    if as_json:
        facts = {"ok": True, "problem_id": problem.problem_id, "warnings": warnings}
        print_json({**facts, "check_more": command})
        return
    warn(warnings)
    remark = f", {count(len(warnings), 'warning')}" if warnings else ""
    size = f"{count(len(problem.check), 'check')}, {count(len(problem.bench), 'benchmark')}"
    click.echo(f"{path}: no mistakes{remark}; {size}; nothing was run")
    click.echo(f"next:    {command}  # runs it on the unchanged code")

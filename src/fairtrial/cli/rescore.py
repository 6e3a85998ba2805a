"""`fairtrial rescore`: stored outputs, judged again."""

from __future__ import annotations

import itertools
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from fairtrial.cli.output import count, folder_argument, json_option, note, print_json
from fairtrial.study import rescore_study

FAILED = 5
MOST_ERRORS = 5


@click.command(
    name="rescore",
    epilog="Example: fairtrial rescore artifacts/my-study --evaluator my_problems:stricter",
    short_help="Judge stored outputs by another evaluator.",
)
@folder_argument
@click.option(
    "--evaluator",
    metavar="MODULE:CALLABLE",
    help="What judges; by default the study's own problems, as they are now.",
)
@json_option
def command(folder: Path, evaluator: str | None, as_json: bool) -> int:
    """Judge stored outputs again, without running an agent, and write the tables anew.

    The new verdicts take the place of the first ones, which stay in the ledger.
    """
    with redirect_stdout(sys.stderr):  # an evaluator may print, and ours may be JSON
        told = rescore_study(folder, evaluator)
    code = FAILED if told.failures else 0
    if as_json:
        print_json(
            {
                "ok": not told.failures,
                "scored": told.scored,
                "failures": dict(told.failures),
                "passed_over": told.passed_over,
            }
        )
        return code
    click.echo(f"{count(told.scored, 'run')} judged again; tables: {folder}")
    if told.passed_over:
        note(f"{count(told.passed_over, 'run')} passed over, without an output to judge")
    for run_id, why in itertools.islice(told.failures.items(), MOST_ERRORS):
        note(f"  {run_id}: {why}")
    if told.failures:
        note(f"the evaluator failed on {count(len(told.failures), 'run')}")
    return code

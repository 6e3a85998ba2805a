"""`fairtrial rescore`: score the stored outputs of a study again."""

from __future__ import annotations

import itertools
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from fairtrial.cli.output import count, folder_argument, json_option, note, print_json
from fairtrial.study import rescore_study

FAILED = 5
SHOWN_ERRORS = 5


@click.command(
    name="rescore",
    epilog="Example: fairtrial rescore artifacts/my-study --evaluator my_problems:stricter",
    short_help="Score stored outputs with another evaluator.",
)
@folder_argument
@click.option(
    "--evaluator",
    metavar="MODULE:CALLABLE",
    help="The evaluator; default: the study's problems in their present version.",
)
@json_option
def command(folder: Path, evaluator: str | None, as_json: bool) -> int:
    """Score stored outputs again without running agents, and write the tables again.

    The new scores replace the previous ones, which stay in the ledger.
    """
    with redirect_stdout(
        sys.stderr
    ):  # evaluators may print, and standard output may have to be JSON
        result = rescore_study(folder, evaluator)
    code = FAILED if result.failures else 0
    if as_json:
        print_json(
            {
                "ok": not result.failures,
                "scored": result.scored,
                "failures": dict(result.failures),
                "passed_over": result.passed_over,
            }
        )
        return code
    click.echo(f"{count(result.scored, 'run')} scored again; tables: {folder}")
    if result.passed_over:
        note(f"{count(result.passed_over, 'run')} skipped: no output to score")
    for run_id, reason in itertools.islice(result.failures.items(), SHOWN_ERRORS):
        note(f"  {run_id}: {reason}")
    if result.failures:
        note(f"the evaluator failed on {count(len(result.failures), 'run')}")
    return code

"""The audit of checks as people see it: a short summary, or all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from fairtrial.arena import Adequacy
from fairtrial.cli.output import count, fold, style
from fairtrial.core import on_one_line

MOST_SURVIVORS = 3
"""How many surviving mutants a summary names."""
LONGEST_LINE = 400


def audit_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--no-audit`` to a command."""
    return click.option(
        "--no-audit",
        is_flag=True,
        help="Don't test first whether the checks reject wrong candidates.",
    )(command)


def summarize_audit(adequacy: Adequacy | None) -> Iterator[str]:
    """Yield what an audit says about the verdicts beside it, in a few lines."""
    if adequacy is None or not adequacy.summary:
        return
    if adequacy.veto:
        yield f"Nothing is to be adopted: {adequacy.veto}."
    else:
        yield f"Checks audited: {adequacy.summary}."
    survivors = adequacy.survivors
    if survivors:
        names = "; ".join(mutant.text for mutant in survivors[:MOST_SURVIVORS])
        more = len(survivors) - MOST_SURVIVORS
        names += f"; and {more} more" if more > 0 else ""
        yield f"No check notices: {names}. `fairtrial audit` prints the diffs."


def print_audit(adequacy: Adequacy) -> None:
    """Print all of an audit: null candidates, mutants, and what to do."""
    for function in adequacy.functions:
        click.echo(style(f"null candidates in place of {function}", bold=True))
        for null in (null for null in adequacy.nulls if null.function == function):
            outcome = style(null.outcome, fg="red") if null.passed else null.outcome
            why = f": {null.why}" if null.passed is None and null.why else ""
            click.echo(fold(f"{outcome}  {null.what}{why}", "  ", "      "))
    score = adequacy.score
    if score is not None:
        judged = adequacy.killed + len(adequacy.survivors)
        counts = f"{adequacy.killed} of {count(judged, 'mutant')} rejected"
        click.echo(style(f"mutation score {score:.0%}: {counts}", bold=True))
    for mutant in adequacy.survivors:
        click.echo(f"\n  surviving: {mutant.text}")
        for line in mutant.diff.splitlines()[2:]:
            click.echo(f"    {on_one_line(line, LONGEST_LINE)}")
    click.echo()
    for text in _advise(adequacy):
        click.echo(fold(text, "", "  "))


def _advise(adequacy: Adequacy) -> Iterator[str]:
    """Yield what is wrong, what was left out, and what to do."""
    if adequacy.veto:
        yield f"Nothing would be adopted: {adequacy.veto}."
    if adequacy.survivors:
        yield (
            "A surviving mutant is either equivalent to the base, or a mistake that no check "
            "notices: then add inputs or tests that do."
        )
    if adequacy.left:
        yield f"{adequacy.left} more were not judged, for want of time: see --max-seconds."
    for text in adequacy.notes:
        yield f"note: {text}"
    if adequacy.nulls and not adequacy.veto and not adequacy.survivors:
        yield "The checks reject everything that was tried."

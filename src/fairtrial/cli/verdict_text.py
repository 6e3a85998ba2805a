"""Verdicts as people see them: a table with a row for each candidate, and the details."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import click

from fairtrial.arena import (
    Basis,
    Evaluation,
    Failure,
    Judgement,
    Rejection,
    Verdict,
    estimate_text,
    point_text,
)
from fairtrial.cli.audit_text import summarize_audit
from fairtrial.cli.output import count, fold, print_wrapped, style
from fairtrial.cli.table import cut_cell
from fairtrial.cli.timing_text import (
    COLORS,
    print_measurement,
    replicates,
    timed_memory_mb,
)
from fairtrial.cli.verdict_rows import Row, lay_out
from fairtrial.core import on_one_line

MOST_FAILURES = 3
MOST_LINES = 8
"""How much of each rejection is shown; --json prints more of it."""
LONGEST_NAME, LONGEST_WHY, LONGEST_PART, LONGEST_NOTE = 40, 400, 1_000, 2_000
MOST_CHOSEN = 5
LEAST_IDLE_S = 0.1
INNERMOST_FIRST = "(most recent call first)"


def row_of(judgement: Judgement) -> Row:
    """A candidate that has its verdict."""
    taken = f"{judgement.check_s:.1f} s" if judgement.check_s else ""
    row = Row(
        shown_name(judgement.name),
        judgement.verdict.value,
        _why(judgement),
        taken,
        COLORS[judgement.verdict],
    )
    peak_mb, timed = judgement.peak_rss_mb, judgement.measurement
    if timed is not None:
        peak_mb = max(peak_mb, timed_memory_mb(timed))
        row = replace(
            row,
            speed=estimate_text(timed.estimate),
            sessions=str(replicates(timed)),
            timing="" if judgement.duplicate_of else f"{timed.seconds:.1f} s",
        )
    return replace(row, memory=f"{peak_mb:,.0f} MB") if peak_mb else row


def shown_name(name: str) -> str:
    """A candidate's name, short enough; names often differ in their last letters only."""
    return cut_cell(on_one_line(name, 10 * LONGEST_NAME), LONGEST_NAME)


def _why(judgement: Judgement) -> str:
    parts = []
    timed = judgement.measurement
    if judgement.duplicate_of is not None:
        parts.append(f"same as {shown_name(judgement.duplicate_of)}")
    elif timed is not None and timed.is_confirmed:
        parts.append(f"{'the best' if timed.adopt else 'led the race'}, measured again")
    if judgement.rejection is not None:
        reason, message = judgement.rejection.reason.value, judgement.rejection.message
        parts.append(message if message.startswith(reason) else f"{reason}: {message}")
    else:
        parts.append(f"basis: {judgement.basis.value}")
    if judgement.not_exercised:
        parts.append(f"not exercised: {', '.join(judgement.not_exercised[:3])}")
    return on_one_line("; ".join(parts), LONGEST_WHY)


def print_verdicts(judgements: Sequence[Judgement]) -> None:
    """The table; as wide as the terminal, and without one a line for each candidate."""
    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    width = shutil.get_terminal_size().columns if is_known else None
    for number, line in enumerate(lay_out([row_of(each) for each in judgements], width)):
        before, verdict, after, color = line
        if number == 0:
            click.echo(style(before + verdict + after, bold=True))
        else:
            text = before + (style(verdict, fg=color) if color else verdict) + after
            click.echo(text.rstrip())


def print_evaluation(evaluation: Evaluation) -> None:
    """The verdicts and, for each candidate, what it did wrong or what the clock said of it."""
    judgements = evaluation.judgements
    if judgements:
        print_verdicts(judgements)
    for judgement in judgements:
        if judgement.duplicate_of is not None:
            continue
        if judgement.rejection is not None:
            _print_details(judgement.name, judgement.rejection)
        if judgement.measurement is not None:
            print_measurement(shown_name(judgement.name), judgement.measurement)
    if judgements:
        click.echo()
    for text in (*_sum_up(evaluation), *summarize_audit(evaluation.adequacy)):
        print_wrapped(text)
    for text in evaluation.notes:
        print_wrapped(f"note: {on_one_line(text, LONGEST_NOTE)}", "", "  ")


def _print_details(name: str, rejection: Rejection) -> None:
    """What failed, unless the table has said all of it."""
    failures = rejection.failures
    if all(_is_told(each, rejection.message) for each in failures):
        return
    click.echo(f"\n{style(shown_name(name), bold=True)}")
    for failure in failures[:MOST_FAILURES]:
        for line in _detail(failure):
            click.echo(line)
    listed = max(len(failures) - MOST_FAILURES, 0)
    if listed + rejection.more > 0:
        further = "; --json prints them" if listed else ""
        if listed and rejection.more:
            further = f"; --json prints {listed:,} of them"
        more = listed + rejection.more
        click.echo(f"  ... and {more:,} more failure{'' if more == 1 else 's'}{further}")


def _is_told(failure: Failure, text: str) -> bool:
    """Whether a text has all that there is to know of a failure; `changed: ` may lead it."""
    message = failure.message
    inner = message.partition(": ")[2] or message
    return not failure.differences and (message in text or inner in text)


def _detail(failure: Failure) -> Iterator[str]:
    yield fold(f"{failure.check}: {on_one_line(failure.what, LONGEST_WHY)}", "  ", "      ")
    for difference in failure.differences[:MOST_FAILURES]:
        parts = (difference.where, difference.expected, difference.actual)
        where, expected, actual = (on_one_line(part, LONGEST_PART) for part in parts)
        yield fold(f"{where}: expected {expected}, got {actual}", "      ", "        ")
    for line in _telling_lines(failure.message.strip().splitlines()):
        line = re.sub(r"(?<=\S)\s{3,}", "  ", line.rstrip())  # as wide as pytest's own terminal
        yield _fit(f"      {on_one_line(line, LONGEST_WHY)}".rstrip())


def _fit(line: str) -> str:
    """A line of others', as it is but on a terminal that is too narrow for it."""
    if not sys.stdout.isatty() or len(line) <= shutil.get_terminal_size().columns:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    return fold(line.lstrip(), indent, indent + "  ")


def _telling_lines(lines: list[str]) -> list[str]:
    """The last ones, or the first where a traceback has its innermost frame on top."""
    for number, line in enumerate(lines):
        if line.endswith(f"{INNERMOST_FIRST}:"):
            frames = [each for each in lines[number:] if "/site-packages/" not in each]
            return frames[:MOST_LINES]
    return lines[-MOST_LINES:]


def _sum_up(evaluation: Evaluation) -> Iterator[str]:
    """`3 passed, 2 rejected (base ..., sandbox: ...)`."""
    counts = count_verdicts(evaluation.judgements)
    text = counts or "the base holds; there were no candidates"
    yield f"{text} (base {evaluation.base[:12]}, sandbox: {evaluation.sandbox})"
    yield from _sum_up_timing(evaluation.judgements)
    weak = [
        each.basis
        for each in evaluation.judgements
        if each.rejection is None and each.basis in (Basis.TESTS, Basis.EXIT_STATUS)
    ]
    if weak:
        yield (
            f"A pass that rests on {weak[0].value.removesuffix(' only')} only guards "
            "against mistakes, not against code that cheats: add a function check to compare "
            "results."
        )


def _sum_up_timing(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Whom to take, and how long the host stood idle to find that out."""
    timed = [each for each in judgements if each.measurement and each.duplicate_of is None]
    if not timed:
        return
    chosen = sorted(
        (
            (measured.is_confirmed, found.ratio, f"{shown_name(each.name)} ({point_text(found)})")
            for each in timed
            if (measured := each.measurement) and measured.adopt and (found := measured.estimate)
        ),
        reverse=True,
    )
    if chosen:
        names = [name for _, _, name in chosen]
        yield from _tell_chosen(names, has_winner=chosen[0][0] or len(chosen) == 1)
    else:
        yield f"{count(len(timed), 'candidate')} timed, none to be adopted."
    estimates = [each.measurement.estimate for each in timed if each.measurement]
    shares = sorted({f"{100 * each.confidence:.3g} %" for each in estimates if each})
    if shares:
        raced = "; the surer ones are of a race and hold all at once" if len(shares) > 1 else ""
        yield f"Intervals are of {' and '.join(shares)}{raced}."
    idle_s = sum(each.measurement.waited_s for each in timed if each.measurement)
    if idle_s >= LEAST_IDLE_S:
        yield f"The host stood idle for {idle_s:.1f} s so that timing had it to itself."


def _tell_chosen(names: Sequence[str], *, has_winner: bool) -> Iterator[str]:
    """The one to take; of others only what was measured: each for itself, against the base."""
    if has_winner:
        yield f"To be adopted: {names[0]}."
        names = names[1:]
    if not names:
        return
    more = f" and {len(names) - MOST_CHOSEN} more" if len(names) > MOST_CHOSEN else ""
    which = "Alone, these would be adopted, too" if has_winner else "To be adopted, each alone"
    yield f"{which}: {', '.join(names[:MOST_CHOSEN])}{more}; together they were not tried."


def count_verdicts(judgements: Sequence[Judgement]) -> str:
    """`3 passed, 2 rejected`."""
    verdicts = [judgement.verdict for judgement in judgements]
    return ", ".join(f"{verdicts.count(each)} {each}" for each in Verdict if each in verdicts)

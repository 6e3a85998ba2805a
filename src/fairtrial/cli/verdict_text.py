"""Text about evaluations: the table of verdicts, details of rejections, and a summary."""

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
)
from fairtrial.cli.audit_text import summarize_audit
from fairtrial.cli.output import count, fold, print_wrapped, style
from fairtrial.cli.problem_commands import print_notes
from fairtrial.cli.table import cut_cell
from fairtrial.cli.timing_text import COLORS, print_measurement
from fairtrial.cli.verdict_rows import Row, lay_out
from fairtrial.core import on_one_line

MOST_FAILURES = 3
MOST_LINES = 8
"""How many failures and lines of each rejection are shown; --json prints more."""
LONGEST_NAME, LONGEST_WHY, LONGEST_PART = 40, 400, 1_000
MOST_CHOSEN = 5
LEAST_IDLE_S = 0.1
INNERMOST_FIRST = "(most recent call first)"


def make_row(judgement: Judgement) -> Row:
    """Return the row of a judged candidate in the table of verdicts."""
    check_time = f"{judgement.check_s:.1f} s" if judgement.check_s else ""
    row = Row(
        shown_name(judgement.name),
        judgement.verdict.value,
        _explain(judgement),
        check_time,
        COLORS[judgement.verdict],
    )
    peak_mb, timed = judgement.peak_rss_mb, judgement.measurement
    if timed is not None:
        peak_mb = max(peak_mb, timed.peak_rss_mb)
        row = replace(
            row,
            speed=timed.speed_text,
            sessions=str(timed.session_count),
            timing="" if judgement.duplicate_of else f"{timed.seconds:.1f} s",
        )
    return replace(row, memory=f"{peak_mb:,.0f} MB") if peak_mb else row


def shown_name(name: str) -> str:
    """Return a candidate's name, shortened in its middle."""
    return cut_cell(on_one_line(name, 10 * LONGEST_NAME), LONGEST_NAME)


def _explain(judgement: Judgement) -> str:
    parts = []
    timed = judgement.measurement
    if judgement.duplicate_of is not None:
        parts.append(f"same as {shown_name(judgement.duplicate_of)}")
    elif timed is not None and timed.is_confirmed:
        parts.append(f"{'the best' if timed.adopt else 'led the race'}, measured again")
    if judgement.rejection is not None:
        reason, message = judgement.rejection.reason.value, judgement.rejection.message
        parts.append(message if message.startswith(reason) else str(judgement.rejection))
    else:
        parts.append(f"basis: {judgement.basis.value}")
    if judgement.not_exercised:
        parts.append(f"not exercised: {', '.join(judgement.not_exercised[:3])}")
    return on_one_line("; ".join(parts), LONGEST_WHY)


def print_verdicts(judgements: Sequence[Judgement]) -> None:
    """Print the table of verdicts, as wide as the terminal; elsewhere one line per candidate."""
    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    width = shutil.get_terminal_size().columns if is_known else None
    for number, line in enumerate(
        lay_out([make_row(judgement) for judgement in judgements], width)
    ):
        before, verdict, after, color = line
        if number == 0:
            click.echo(style(before + verdict + after, bold=True))
        else:
            text = before + (style(verdict, fg=color) if color else verdict) + after
            click.echo(text.rstrip())


def print_evaluation(evaluation: Evaluation) -> None:
    """Print the verdicts, the failures and measurements of each candidate, and a summary."""
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
    notes = [f"{shown_name(rows.name)}: {note}" for rows in judgements for note in rows.notes]
    if judgements:
        click.echo()
    for text in (*_summarize(evaluation), *summarize_audit(evaluation.adequacy)):
        print_wrapped(text)
    print_notes((*notes, *evaluation.notes))


def _print_details(name: str, rejection: Rejection) -> None:
    """Print the failures of a rejected candidate, unless the table contains them."""
    failures = rejection.failures
    if all(_is_contained(failure, rejection.message) for failure in failures):
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


def _is_contained(failure: Failure, text: str) -> bool:
    """Return whether a text contains the message of a failure that has no differences.

    The message may begin with a prefix such as `changed: `.
    """
    message = failure.message
    inner = message.partition(": ")[2] or message
    return not failure.differences and (message in text or inner in text)


def _detail(failure: Failure) -> Iterator[str]:
    yield fold(f"{failure.check}: {on_one_line(failure.what, LONGEST_WHY)}", "  ", "      ")
    for difference in failure.differences[:MOST_FAILURES]:
        parts = (difference.where, difference.expected, difference.actual)
        where, expected, actual = (on_one_line(part, LONGEST_PART) for part in parts)
        yield fold(f"{where}: expected {expected}, got {actual}", "      ", "        ")
    for line in _select_lines(failure.message.strip().splitlines()):
        line = re.sub(r"(?<=\S)\s{3,}", "  ", line.rstrip())  # as wide as pytest's own terminal
        yield _fit(f"      {on_one_line(line, LONGEST_WHY)}".rstrip())


def _fit(line: str) -> str:
    """Return a line of output, wrapped if a terminal is too narrow for it."""
    if not sys.stdout.isatty() or len(line) <= shutil.get_terminal_size().columns:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    return fold(line.lstrip(), indent, indent + "  ")


def _select_lines(lines: list[str]) -> list[str]:
    """Return the last lines, or the first of a traceback that has its innermost frame on top."""
    for number, line in enumerate(lines):
        if line.endswith(f"{INNERMOST_FIRST}:"):
            frames = [frame for frame in lines[number:] if "/site-packages/" not in frame]
            return frames[:MOST_LINES]
    return lines[-MOST_LINES:]


def _summarize(evaluation: Evaluation) -> Iterator[str]:
    """Yield the sentences below the table: counts, recommendation, weak bases."""
    counts = count_verdicts(evaluation.judgements)
    text = counts or "the base holds; there were no candidates"
    yield f"{text} (base {evaluation.base[:12]}, sandbox: {evaluation.sandbox})"
    yield from _summarize_timing(evaluation.judgements)
    weak = [
        judgement.basis
        for judgement in evaluation.judgements
        if judgement.rejection is None and judgement.basis in (Basis.TESTS, Basis.EXIT_STATUS)
    ]
    if weak:
        yield (
            f"A pass that rests on {weak[0].value.removesuffix(' only')} only guards "
            "against mistakes, not against code that cheats: add a function check to compare "
            "results."
        )


def _summarize_timing(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield the candidates to adopt, the confidence of intervals, and the time spent waiting."""
    timed = [
        (judgement.name, judgement.measurement)
        for judgement in judgements
        if judgement.measurement and judgement.duplicate_of is None
    ]
    if not timed:
        return
    chosen = sorted(
        (
            (measured.is_confirmed, estimate.ratio, f"{shown_name(name)} ({estimate.ratio_text()})")
            for name, measured in timed
            if measured.adopt and (estimate := measured.estimate)
        ),
        reverse=True,
    )
    if chosen:
        names = [name for _, _, name in chosen]
        yield from _describe_chosen(names, has_winner=chosen[0][0] or len(chosen) == 1)
    else:
        yield f"{count(len(timed), 'candidate')} timed, none to be adopted."
    estimates = [measured.estimate for _, measured in timed if measured.estimate]
    shares = sorted({f"{100 * estimate.confidence:.3g} %" for estimate in estimates})
    if shares:
        raced = "; the higher is of a race, where all hold at once" if len(shares) > 1 else ""
        yield f"Intervals are of {' and '.join(shares)}{raced}."
    idle_s = sum(measured.waited_s for _, measured in timed)
    if idle_s >= LEAST_IDLE_S:
        yield f"The host stood idle for {idle_s:.1f} s so that timing had it to itself."


def _describe_chosen(names: Sequence[str], *, has_winner: bool) -> Iterator[str]:
    """Yield which candidates to adopt; all were measured against the base only."""
    if has_winner:
        yield f"To be adopted: {names[0]}."
        names = names[1:]
    if not names:
        return
    more = f" and {len(names) - MOST_CHOSEN} more" if len(names) > MOST_CHOSEN else ""
    which = "Alone, these would be adopted, too" if has_winner else "To be adopted, each alone"
    yield f"{which}: {', '.join(names[:MOST_CHOSEN])}{more}; together they were not tried."


def count_verdicts(judgements: Sequence[Judgement]) -> str:
    """Return the number of candidates by verdict: `3 passed, 2 rejected`."""
    verdicts = [judgement.verdict for judgement in judgements]
    return ", ".join(f"{verdicts.count(kind)} {kind}" for kind in Verdict if kind in verdicts)

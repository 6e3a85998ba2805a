"""Verdicts as people see them: a table with a row for each candidate, and the details."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from fairtrial.arena.evaluation import Evaluation
from fairtrial.cli.output import fold, print_wrapped, style
from fairtrial.cli.table import GAP, cell_width, cut_cell, pad_cell, rule_mark
from fairtrial.errors import on_one_line
from fairtrial.model.judgements import Judgement
from fairtrial.model.verdicts import Basis, Failure, Rejection, Verdict

COLOURS = {
    Verdict.PASSED: "green",
    Verdict.FASTER: "green",
    Verdict.REJECTED: "red",
    Verdict.SLOWER: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.EQUIVALENT: "cyan",
}
MOST_FAILURES = 3
MOST_LINES = 8
"""How much of each rejection is shown; --json prints more of it."""
LONGEST_NAME, LONGEST_WHY, LONGEST_PART, LONGEST_NOTE = 40, 400, 1_000, 2_000
NARROWEST_WHY, NARROWEST = 36, 10
LONGEST_RULE = 80
SEAMS = (r"::", r"/", r"[_.,:-]")
"""Where a long word is best divided, the best place first: between a file and its test, ..."""
INNERMOST_FIRST = "(most recent call first)"


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate in the table; its colour is the verdict's."""

    name: str
    verdict: str
    why: str = ""
    time: str = ""
    colour: str | None = None


HEADER = Row("candidate", "verdict", "why", "time")


def row_of(judgement: Judgement) -> Row:
    """A candidate that has its verdict."""
    taken = f"{judgement.check_s:.1f} s" if judgement.check_s else ""
    colour = COLOURS[judgement.verdict]
    return Row(shown_name(judgement.name), judgement.verdict.value, _why(judgement), taken, colour)


def shown_name(name: str) -> str:
    """A candidate's name, short enough; names often differ in their last letters only."""
    return cut_cell(on_one_line(name, 10 * LONGEST_NAME), LONGEST_NAME)


def _why(judgement: Judgement) -> str:
    parts = []
    if judgement.duplicate_of is not None:
        parts.append(f"same as {shown_name(judgement.duplicate_of)}")
    if judgement.rejection is not None:
        reason, message = judgement.rejection.reason.value, judgement.rejection.message
        parts.append(message if message.startswith(reason) else f"{reason}: {message}")
    else:
        parts.append(f"basis: {judgement.basis.value}")
    if judgement.not_exercised:
        parts.append(f"not exercised: {', '.join(judgement.not_exercised[:3])}")
    return on_one_line("; ".join(parts), LONGEST_WHY)


def lay_out(
    rows: Sequence[Row], width: int | None, *, folded: bool = True
) -> Iterator[tuple[str, str, str, str | None]]:
    """Lines of the table, each in three parts, of which the second has the colour that follows.

    What is too long for `width` is continued on further lines if `folded`, else cut. Without a
    width each row is one line.
    """
    shown = [HEADER, *rows]
    names, verdicts, whys, times = (
        max(cell_width(getattr(row, column)) for row in shown)
        for column in ("name", "verdict", "why", "time")
    )
    if width is not None:
        left = width - verdicts - times - 3 * len(GAP)
        names = min(names, max(left - NARROWEST_WHY, NARROWEST))
        whys = max(left - names, NARROWEST)
    for row in shown:
        lines = [row.why]
        if width is not None:
            lines = fold_cell(row.why, whys) if folded else [cut_cell(row.why, whys)]
        for number, line in enumerate(lines):
            one = row if number == 0 else Row("", "")
            yield (
                pad_cell(cut_cell(one.name, names), names) + GAP,
                pad_cell(one.verdict, verdicts),
                f"{GAP}{pad_cell(line, whys)}{GAP}{one.time.rjust(times)}".rstrip(),
                one.colour,
            )
        if row is HEADER:
            total = names + verdicts + whys + times + 3 * len(GAP)
            yield rule_mark() * (min(total, LONGEST_RULE) if width is None else total), "", "", None


def fold_cell(text: str, width: int) -> list[str]:
    """A text on lines of this width; words that are too long for one are divided at a seam."""
    lines = [""]
    for word in text.split(" "):
        for number, piece in enumerate(_divide(word, width)):
            joint = " " if number == 0 and lines[-1] else ""
            if lines[-1] and (number or cell_width(lines[-1] + joint + piece) > width):
                lines.append(piece)
            else:
                lines[-1] += joint + piece
    return lines


def _divide(word: str, width: int) -> list[str]:
    """The fewest pieces of a word that fit."""
    if cell_width(word) <= width:
        return [word]
    for seam in SEAMS:
        pieces = re.findall(rf"(?:(?!{seam}).)*(?:{seam}|$)", word)
        if all(cell_width(piece) <= width for piece in pieces):
            return _join(pieces, width)
    return _join(list(word), width)


def _join(pieces: Sequence[str], width: int) -> list[str]:
    joined = [""]
    for piece in pieces:
        if cell_width(joined[-1] + piece) > width:
            joined.append("")
        joined[-1] += piece
    return joined


def print_verdicts(judgements: Sequence[Judgement]) -> None:
    """The table; as wide as the terminal, and without one a line for each candidate."""
    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    width = shutil.get_terminal_size().columns if is_known else None
    for number, line in enumerate(lay_out([row_of(each) for each in judgements], width)):
        before, verdict, after, colour = line
        if number == 0:
            click.echo(style(before + verdict + after, bold=True))
        else:
            text = before + (style(verdict, fg=colour) if colour else verdict) + after
            click.echo(text.rstrip())


def print_evaluation(evaluation: Evaluation) -> None:
    """The verdicts and, for each rejected candidate, what it did wrong."""
    judgements = evaluation.judgements
    if judgements:
        print_verdicts(judgements)
    for judgement in judgements:
        if judgement.rejection is not None and judgement.duplicate_of is None:
            _print_details(judgement.name, judgement.rejection)
    if judgements:
        click.echo()
    for text in _sum_up(evaluation):
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
        click.echo(f"  ... and {listed + rejection.more:,} more{further}")


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
        yield f"      {on_one_line(line.rstrip(), LONGEST_WHY)}".rstrip()


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
    passed = [each for each in evaluation.judgements if each.verdict == Verdict.PASSED]
    if any(each.basis in (Basis.TESTS, Basis.EXIT_STATUS) for each in passed):
        yield (
            f"A pass that rests on {passed[0].basis.value.removesuffix(' only')} only guards "
            "against mistakes, not against code that cheats: add a function check to compare "
            "results."
        )


def count_verdicts(judgements: Sequence[Judgement]) -> str:
    """`3 passed, 2 rejected`."""
    verdicts = [judgement.verdict for judgement in judgements]
    return ", ".join(f"{verdicts.count(each)} {each}" for each in Verdict if each in verdicts)

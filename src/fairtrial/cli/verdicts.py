"""Verdicts as people see them: a table that fills while candidates are judged, and the details."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from fairtrial.arena.evaluation import Evaluation
from fairtrial.cli.output import fold, style
from fairtrial.errors import on_one_line
from fairtrial.model.verdicts import Basis, Failure, Judgement, Verdict

if TYPE_CHECKING:
    from rich.table import Table

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
"""How much of each rejection is shown; --json prints all of it."""
LONGEST_NAME, LONGEST_WHY = 40, 400
REFRESH_PER_S = 8


class LiveTable:
    """The table while it fills, on standard error; gone when the block ends."""

    def __init__(self, names: Sequence[str]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._names = names
        self._began: dict[int, float] = {}
        self._judged: dict[int, Judgement] = {}
        self._stage = "starting"
        self._live = Live(
            get_renderable=self._render,
            console=Console(stderr=True),
            refresh_per_second=REFRESH_PER_S,
            transient=True,
        )

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """What is going on before the first candidate is looked at."""
        self._stage = text

    def begin(self, place: int) -> None:
        """A candidate's checks begin."""
        self._stage = ""
        self._began.setdefault(place, time.monotonic())

    def judge(self, place: int, judgement: Judgement) -> None:
        """A candidate has its verdict."""
        self._stage = ""
        self._judged[place] = judgement

    def _render(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        table = make_table()
        for place, name in enumerate(self._names):
            judgement = self._judged.get(place)
            if judgement is not None:
                table.add_row(*_row(judgement))
                continue
            began = self._began.get(place)
            state = "waiting" if began is None else "checking"
            taken = "" if began is None else f"{time.monotonic() - began:.1f} s"
            table.add_row(Text(_name(name)), Text(state, style="dim"), "", Text(taken, style="dim"))
        total = len(self._names)
        line = self._stage or f"{len(self._judged)} of {total} judged"
        return Group(*([table] if total else []), Text(f"{line} ...", style="dim"))


def make_table() -> Table:
    """The table without its rows."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("candidate", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("why", ratio=1, overflow="fold")
    table.add_column("time", justify="right", no_wrap=True)
    return table


def _row(judgement: Judgement) -> tuple[Any, ...]:
    from rich.text import Text

    colour = COLOURS[judgement.verdict]
    taken = f"{judgement.check_s:.1f} s" if judgement.check_s else ""
    return (
        Text(_name(judgement.name)),
        Text(judgement.verdict.value, style=colour),
        Text(_why(judgement)),
        Text(taken),
    )


def _name(name: str) -> str:
    return on_one_line(name, LONGEST_NAME)


def _why(judgement: Judgement) -> str:
    parts = []
    if judgement.duplicate_of is not None:
        parts.append(f"same as {_name(judgement.duplicate_of)}")
    if judgement.rejection is not None:
        reason, message = judgement.rejection.reason.value, judgement.rejection.message
        parts.append(message if message.startswith(reason) else f"{reason}: {message}")
    else:
        parts.append(f"basis: {judgement.basis.value}")
    if judgement.not_exercised:
        parts.append(f"not exercised: {', '.join(judgement.not_exercised[:3])}")
    return on_one_line("; ".join(parts), LONGEST_WHY)


def print_evaluation(evaluation: Evaluation) -> None:
    """The verdicts and, for each rejected candidate, what it did wrong."""
    from rich.console import Console

    judgements = evaluation.judgements
    if judgements:
        table = make_table()
        for judgement in judgements:
            table.add_row(*_row(judgement))
        Console(highlight=False).print(table)
    for judgement in judgements:
        rejection = judgement.rejection
        if rejection is None or judgement.duplicate_of is not None or not rejection.failures:
            continue
        click.echo(f"\n{style(_name(judgement.name), bold=True)}")
        for failure in rejection.failures[:MOST_FAILURES]:
            for line in _detail(failure):
                click.echo(line)
        more = len(rejection.failures) - MOST_FAILURES + rejection.more
        if more > 0:
            click.echo(f"  ... and {more:,} more; --json prints them")
    click.echo(f"\n{_sum_up(evaluation)}")
    for text in evaluation.notes:
        click.echo(fold(f"note: {text}", "", "  "))


def _detail(failure: Failure) -> Iterator[str]:
    yield fold(f"{failure.check}: {on_one_line(failure.what, LONGEST_WHY)}", "  ", "      ")
    for difference in failure.differences[:MOST_FAILURES]:
        yield fold(
            f"{difference.where}: expected {difference.expected}, got {difference.actual}",
            "      ",
            "        ",
        )
    lines = failure.message.strip().splitlines()
    for line in lines[-MOST_LINES:]:
        yield f"      {on_one_line(line, LONGEST_WHY)}"


def _sum_up(evaluation: Evaluation) -> str:
    """`3 passed, 2 rejected, in bubblewrap; ...`."""
    verdicts = [judgement.verdict for judgement in evaluation.judgements]
    counts = [f"{verdicts.count(each)} {each.value}" for each in Verdict if each in verdicts]
    text = ", ".join(counts) if counts else "the base holds; there were no candidates"
    text += f" (base {evaluation.base[:12]}, sandbox: {evaluation.sandbox})"
    passed = [each for each in evaluation.judgements if each.verdict == Verdict.PASSED]
    if any(each.basis in (Basis.TESTS, Basis.EXIT_STATUS) for each in passed):
        text += (
            "\nA pass that rests on tests only guards against mistakes, not against code that "
            "cheats: add a function check to compare results."
        )
    return text

"""`fairtrial optimize --hottest N`: one problem for each of a project's slowest functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import ArenaSettings, delivery, targets
from fairtrial.cli.compare_arguments import words_after_dashes
from fairtrial.cli.hotspots import print_hot_spots
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import note, print_json, print_wrapped, shown_path, style
from fairtrial.cli.problem_commands import choose_emit
from fairtrial.cli.table import print_table
from fairtrial.cli.target_options import show_draft
from fairtrial.core import FairtrialError, Mistake, StudyError, atomic_write, on_one_line
from fairtrial.optimize import OptimizationResult

REPORT = Path("artifacts", "hottest.md")
_COLUMNS = ("function", "own time", "result", "patch")


@dataclass(frozen=True, slots=True)
class FoundBest:
    """What the optimization of one problem found.

    problem: the problem file
    folder: the output folder
    result: the result; None if it failed
    winner: the best candidate; None if none is worth taking
    done: what was done with it
    is_new: whether it was found now, not in an earlier session
    error: why it failed
    """

    problem: Path
    folder: Path
    result: OptimizationResult | None = None
    winner: delivery.Delivery | None = None
    done: tuple[str, ...] = ()
    is_new: bool = True
    error: FairtrialError | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        assert self.result is not None
        facts = {name: value for name, value in self.result.to_output().items() if name != "edits"}
        head = {"ok": True, "output_dir": str(self.folder), "is_new": self.is_new}
        return {**head, **facts, "done": list(self.done)}


def hottest_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--hottest`` to a command."""
    option = click.option(
        "--hottest",
        type=click.IntRange(1, 100),
        metavar="N",
        help="Optimize the N functions that take most time in the project's tests, or in the "
        "command after `--`, one after the other.",
    )
    return option(command)


def refuse_with_hottest(
    problem: Path | None, *, records: bool, output: Path | None, branch: str | None, applies: bool
) -> None:
    """Raise `StudyError` for what can't be combined with ``--hottest``."""
    given = {"--record": records, "--output": output, "--branch": branch, "--apply": applies}
    named = [name for name, value in given.items() if value]
    if problem is not None:
        named.insert(0, str(problem))
    if named:
        message = f"--hottest can't be combined with {', '.join(named)}"
        raise StudyError(Mistake((), message, "it finds the functions, and writes patches"))


def optimize_hottest(
    most: int, search: Callable[[Path], FoundBest], *, unsandboxed: bool, as_json: bool
) -> int:
    """Find the hottest functions, optimize each, and print and write one report.

    search: optimizes one problem
    """
    command = words_after_dashes()
    settings = ArenaSettings(unsandboxed=unsandboxed, emit=choose_emit(as_json=as_json))
    hot = run_interruptible(partial(targets.find_hot_spots, command, settings=settings))
    chosen = [spot for spot in hot.spots if spot.recordable][:most]
    if not as_json:
        print_hot_spots(hot, next_step=False)
    if not chosen:
        message = "no calls of the hottest functions can be recorded"
        hint = "fairtrial hotspots says why; name another command"
        raise StudyError(Mistake((), message, hint), source=str(hot.project))
    rows: list[tuple[str, str, str, str]] = []
    results: list[dict[str, Any]] = []
    for spot in chosen:
        if not as_json:
            note(style(f"--- {spot.target}", bold=True))
        best, error = _optimize_spot(spot.target, hot.project, command, search, settings, as_json)
        error = error or (best.error if best else None)
        rows.append((spot.target, f"{spot.own_s:.3f} s", *_describe(best, error)))
        entry = best.as_dict() if best and best.result else {"ok": False, "error": str(error)}
        results.append({"target": spot.target, "own_s": spot.own_s, **entry})
    _write_report(hot, rows)
    if as_json:
        print_json({"ok": True, "report": str(REPORT), "results": results})
        return 0
    click.echo()
    print_table(_COLUMNS, rows, total=len(rows))
    click.echo(f"report: {shown_path(REPORT)}")
    return 0


def _optimize_spot(
    target: str,
    project: Path,
    command: tuple[str, ...],
    search: Callable[[Path], FoundBest],
    settings: ArenaSettings,
    as_json: bool,
) -> tuple[FoundBest | None, FairtrialError | None]:
    """Draft and optimize one function; an error of one doesn't cost the others."""
    try:
        prepare = partial(
            targets.prepare_target, str(project / target), command=command, settings=settings
        )
        draft = run_interruptible(prepare)
        if not as_json:
            show_draft(draft)
        return search(draft.problem), None
    except FairtrialError as error:
        if not as_json:
            print_wrapped(f"{target}: {on_one_line(str(error), 600)}", "", "  ")
        return None, error


def _describe(best: FoundBest | None, error: FairtrialError | None) -> tuple[str, str]:
    """Return the cells of a result and its patch."""
    if best is None or best.result is None:
        return f"not done: {on_one_line(str(error), 200)}", ""
    if best.winner is None:
        return "none is worth taking", ""
    return best.result.speed_text, shown_path(best.winner.patch)


def _write_report(hot: targets.HotSpots, rows: list[tuple[str, str, str, str]]) -> None:
    """Write one report about all functions."""
    lines = ["# The hottest functions", ""]
    lines.append(f"`{hot.command}` took {hot.seconds:.1f} s under a profiler. Each function was")
    lines.append("optimized by itself: gains are those of its own benchmark, and don't add up.")
    lines += ["", f"| {' | '.join(_COLUMNS)} |", "|---|---|---|---|"]
    for row in rows:
        cells = (cell.replace("|", "\\|") for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(REPORT) as file:
        file.write("\n".join(lines) + "\n")

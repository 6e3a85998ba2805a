"""Two runs side by side: the same problem under two conditions, for `fairtrial show --diff`."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import harmless, print_json, style
from fairtrial.cli.transcript_text import describe_record
from fairtrial.core import Mistake, StudyError
from fairtrial.study import Results, RunResult, agents, open_results, tables

GAP = " │ "
LONGEST_TEXT = 4_000
Part = tuple[str, str]
"""Title and text of one part of a conversation or output."""


def show_diff(folder: Path, first: str, second: str, *, as_json: bool) -> None:
    """Print two runs side by side: what differs between them, and what was said.

    first, second: ids of runs, levels (`small`, `model=small, style=terse`), or expressions; of
        levels and expressions the first two runs on the same problem whose conditions differ least
    """
    with open_results(folder) as results:
        listed = tables.list_runs(results)
        one, two = _find_pair(results, listed, first, second)
        details = {result.run_id: result for result in _read(results, (one.run_id, two.run_id))}
    a, b = details[one.run_id], details[two.run_id]
    facts = _compare(one, two)
    if as_json:
        sides = [
            {**run.to_dict(), "outputs": result.outputs, "events": list(result.observations)}
            for run, result in ((one, a), (two, b))
        ]
        print_json(json.loads(tables.as_json({"a": sides[0], "b": sides[1], "differs": facts})))
        return
    _print_sides(facts, list(_parts(a)), list(_parts(b)), one.facts["problem_id"])


def _find_pair(
    results: Results, listed: Sequence[tables.ListedRun], first: str, second: str
) -> tuple[tables.ListedRun, tables.ListedRun]:
    by_id = {run.run_id: run for run in listed}
    ones, twos = (_select(results, by_id, text) for text in (first, second))
    pairs = [
        (one, two)
        for one in ones
        for two in twos
        if one is not two
        and (
            len(ones) == len(twos) == 1
            or (one.facts["problem_id"], one.facts["replicate"])
            == (two.facts["problem_id"], two.facts["replicate"])
        )
    ]
    if not pairs:
        message = f"no run of '{first}' and run of '{second}' are on the same problem"
        raise StudyError(Mistake(("--diff",), message, "`fairtrial show DIR` lists the runs"))
    return min(pairs, key=_distance)


def _distance(pair: tuple[tables.ListedRun, tables.ListedRun]) -> tuple[int, bool]:
    """Rank pairs: as few differences between conditions as possible, then different outcomes."""
    one, two = pair
    differs = one.facts["status"] != two.facts["status"] or one.metrics != two.metrics
    others = {**one.factors, "agent_id": one.facts["agent_id"]}
    theirs = {**two.factors, "agent_id": two.facts["agent_id"]}
    return sum(theirs.get(name) != value for name, value in others.items()), not differs


def _select(
    results: Results, by_id: Mapping[str, tables.ListedRun], text: str
) -> list[tables.ListedRun]:
    """Return the run with an id that begins with a text, or the runs that meet an expression."""
    wanted = text if text.startswith("run-") else f"run-{text}"
    matching = [run for run_id, run in by_id.items() if run_id.startswith(wanted)]
    if len(matching) > 1:
        names = ", ".join(run.run_id for run in matching[:5])
        raise StudyError(
            Mistake(("--diff",), f"several runs begin with '{text}'", f"such as {names}")
        )
    if matching:
        return matching
    if text.startswith("run-"):
        hint = "`fairtrial show DIR` lists those that are done"
        raise StudyError(Mistake(("--diff",), f"there is no run '{text}' that is done", hint))
    with_levels = _find_with_levels(results, by_id.values(), text)
    if with_levels:
        return with_levels
    try:
        selected = tables.list_runs(results, where=text)
    except StudyError as error:
        message = (
            f"'{text}' is no run, no level of a factor, and no expression over runs: "
            f"{error.mistakes[0].message}"
        )
        raise StudyError(Mistake(("--diff",), message, error.mistakes[0].hint)) from None
    if not selected:
        hint = "factors are compared by the values of their levels, not by the levels' names"
        raise StudyError(Mistake(("--diff",), f"no run that is done meets '{text}'", hint))
    return [by_id[run.run_id] for run in selected]


def _find_with_levels(
    results: Results, listed: Iterable[tables.ListedRun], text: str
) -> list[tables.ListedRun]:
    """Return the runs at the levels that a text names; none if it names something else."""
    listed = list(listed)
    wanted: dict[str, Any] = {}
    for part in [text] if _find_levels(results, listed, text) else text.split(","):
        found = _find_levels(results, listed, part)
        if len(found) > 1:
            names = ", ".join(f"'{name}={part.strip()}'" for name in found)
            message = f"several factors have a level '{part.strip()}'"
            raise StudyError(Mistake(("--diff",), message, f"say which: {names}"))
        if not found:
            return []
        wanted |= found
    return [
        run
        for run in listed
        if all(name in run.scope() and run.scope()[name] == value for name, value in wanted.items())
    ]


def _find_levels(results: Results, listed: Sequence[tables.ListedRun], text: str) -> dict[str, Any]:
    """Return the factors, and agents, that have a level of this name: `small`, `model=small`."""
    levels = [
        (factor.name, str(name), level.value)
        for factor in results.study.factors
        for level in factor.levels
        for name in (level.name, level.value)
    ]
    levels += [("agent_id", str(run.facts["agent_id"]), run.facts["agent_id"]) for run in listed]
    written = {text.strip(), re.sub(r"\s*=\s*", "=", text.strip(), count=1)}
    found: dict[str, Any] = {}
    for factor, name, value in levels:
        names = [factor, factor.rpartition(".")[2], *(["agent"] if factor == "agent_id" else [])]
        spellings = {name, *(f"{shown}={name}" for shown in names)}
        if written & spellings:
            found.setdefault(factor, value)
    return found


def _read(results: Results, run_ids: Sequence[str]) -> Iterator[RunResult]:
    return (result for result in results if result.run_id in run_ids)


def _compare(one: tables.ListedRun, two: tables.ListedRun) -> dict[str, list[Any]]:
    """Return the facts of two runs that differ, by name."""
    names = ("run_id", "status", "error", "agent_id", "problem_id", "replicate", "primary_outcome",
             "cost_usd", "input_tokens", "output_tokens", "latency_s")  # fmt: skip
    sides = [{name: run.facts[name] for name in names} for run in (one, two)]
    for side, run in zip(sides, (one, two), strict=True):
        side |= {name: value for name, value in run.factors.items() if name not in side}
        side |= {name: value for name, value in run.metrics.items() if name not in side}
    both = dict.fromkeys([*sides[0], *sides[1]])
    values = {name: [side.get(name) for side in sides] for name in both}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def _parts(result: RunResult) -> Iterator[Part]:
    """Yield what was said in a run; its output if there is no transcript, or the error."""
    records = agents.read_transcript(result.observations)
    shown = {item.facts.get("call_id") for item in records if item.kind == "tool_result"}
    for item in records:
        if item.kind == "model_call":
            continue  # figures that differ in every run
        if item.role == "tool" and item.facts.get("tool_call_id") in shown:
            continue
        yield describe_record(item)
    if not records:
        for name, value in result.outputs.items():
            yield str(name), value if isinstance(value, str) else tables.as_json(value)
    if result.traceback or result.error_info:
        yield "error", str(result.error_info or result.traceback)


def _print_sides(
    facts: Mapping[str, Sequence[Any]], ones: Sequence[Part], twos: Sequence[Part], problem: Any
) -> None:
    width = shutil.get_terminal_size().columns
    room = max((width - len(GAP)) // 2, 10)
    if problem:
        click.echo(style(f"problem {problem}", bold=True))
    for name, pair in facts.items():
        cells = [f"{name}: {_cell(value)}" for value in pair]
        _print_rows(cells, room)
    for one, two in zip_longest(ones, twos, fillvalue=("", "")):
        click.echo()
        if one == two:
            click.echo(style(harmless(f"both: {one[0]}"), bold=True))
            for line in _wrap(one[1], width):
                click.echo(harmless(line))
            continue
        _print_rows([one[0], two[0]], room, bold=True)
        _print_rows([one[1], two[1]], room)


def _print_rows(texts: Sequence[str], room: int, *, bold: bool = False) -> None:
    """Print two texts in columns beside each other."""
    from rich.cells import cell_len

    for left, right in zip_longest(*(_wrap(text, room) for text in texts), fillvalue=""):
        left, right = harmless(left), harmless(right)
        padded = left + " " * max(room - cell_len(left), 0)
        shown = [style(padded, bold=True), style(right, bold=True)] if bold else [padded, right]
        click.echo(GAP.join(shown).rstrip())


def _wrap(text: str, room: int) -> list[str]:
    """Return the lines of a text, folded; what is very long is cut, which a last line says."""
    from rich.cells import cell_len, chop_cells

    cut = len(text) - LONGEST_TEXT
    lines: list[str] = []
    for line in text[:LONGEST_TEXT].splitlines() or [""]:
        folded = textwrap.wrap(line, room, drop_whitespace=False, replace_whitespace=False) or [""]
        for part in folded:
            lines += [part.rstrip()] if cell_len(part) <= room else chop_cells(part, room)
    if cut > 0:
        lines += textwrap.wrap(f"... {cut:,} more characters; --json has them all", room)
    return lines


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value if isinstance(value, str) else tables.as_json(value))

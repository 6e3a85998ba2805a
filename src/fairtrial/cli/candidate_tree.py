"""The tree of an optimization's candidates, and single candidates, for `fairtrial show`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import Estimate, Verdict
from fairtrial.cli.output import fold, harmless, print_wrapped, style
from fairtrial.cli.table import GAP
from fairtrial.cli.timing_text import COLORS
from fairtrial.core import Mistake, StudyError, on_one_line
from fairtrial.optimize import OptimizationResult
from fairtrial.study import Results, RunResult, Study, design, open_results

Row = Mapping[str, Any]
LOOK_AT = 20
LONGEST_WHY, LONGEST_NAME, LONGEST_ERROR = 100, 60, 300


def has_candidates(folder: Path) -> bool:
    """Return whether a study is about candidates: it has a code problem, or early runs have some.

    The same runs are looked at as for the section of a page.
    """
    with open_results(folder) as results:
        if any(problem.use == "code" for problem in results.study.problems.values()):
            return True
        return any(
            event.get("event_type") == "candidate"
            for result in results[:LOOK_AT]
            for event in result.observations
        )


def read_candidates(folder: Path, run_id: str = "") -> list[Row]:
    """Return the candidates of all runs, or of one; raise a `StudyError` if there are none."""
    with open_results(folder) as results:
        rows: list[Row] = [row for row in results.candidates if row["run_id"].startswith(run_id)]
        if not rows:
            message = f"{folder} has no candidates to show"
            raise StudyError(Mistake((), message, _advise_without_candidates(folder, results)))
    return rows


def _advise_without_candidates(folder: Path, results: Results) -> str:
    """Return what to look at instead: a failed run if there is one, else any run."""
    failed = next((result for result in results if result.error_info), None)
    if failed is not None:
        which = "its run failed" if len(results) == 1 else "the first of its failed runs"
        why = on_one_line(str(failed.error_info), LONGEST_ERROR)
        return f"{which}: {why}: `fairtrial show {folder} {failed.run_id}`"
    run_id = results[0].run_id if len(results) else "RUN_ID"
    return (
        "only optimizations have them, once they are done; a run is shown by "
        f"`fairtrial show {folder} {run_id}`"
    )


def print_tree(folder: Path, rows: Sequence[Row]) -> None:
    """Print the candidates of each run as a tree, with their verdicts."""
    headings = _read_headings(folder)
    for run_id in dict.fromkeys(row["run_id"] for row in rows):
        heading = headings[run_id]
        click.echo(style(run_id, bold=True) + heading.condition)
        own = [row for row in rows if row["run_id"] == run_id]
        for row, depth in _descend(own, None, 1):
            _print_row(row, depth, heading.outcomes.get(row["candidate_id"], ""))


@dataclass(frozen=True, slots=True)
class RunHeading:
    """The heading of a run's candidates.

    condition: the run's factors, agent, problem and replicate; empty in a study of one run
    outcomes: remarks on the winner and on the candidates that weren't confirmed, by id
    """

    condition: str
    outcomes: Mapping[str, str]


def _read_headings(folder: Path) -> dict[str, RunHeading]:
    with open_results(folder) as results:
        conditions = {
            condition.condition_id: condition.factor_assignments for condition in results.conditions
        }
        is_study = len(results.reader.plan) > 1
        shown = conditions if is_study else {}
        return {result.run_id: make_heading(result, results.study, shown) for result in results}


def make_heading(
    result: RunResult, study: Study, conditions: Mapping[str, Mapping[str, Any]]
) -> RunHeading:
    """Return the heading of a run; `conditions`: the assigned factors, by the condition's id."""
    spec, text = result.run_spec, ""
    if spec is not None and conditions:
        assigned = conditions.get(spec.condition_id, {})
        factors = design.select_assignments(study, spec.agent_spec_ref, assigned)
        named = [f"{name.rpartition('.')[2]}={value}" for name, value in factors.items()]
        who = [spec.agent_spec_ref or "", spec.problem_id or "", f"replicate {spec.replicate}"]
        text = "  " + ", ".join([*named, *filter(None, who)])
    optimization = OptimizationResult.from_output(result.outputs)
    if optimization is None:
        return RunHeading(text, {})
    outcomes = {
        id: f"<- out: {on_one_line(why, LONGEST_WHY)}" for id, why in optimization.dropped.items()
    }
    if optimization.best is not None:
        outcomes[optimization.best] = f"<- the best: {optimization.speed_text} when measured again"
    return RunHeading(text, outcomes)


def _descend(rows: Sequence[Row], parent: str | None, depth: int) -> Iterator[tuple[Row, int]]:
    for row in rows:
        if (row["parent_id"] or None) == parent:
            yield row, depth
            yield from _descend(rows, row["candidate_id"], depth + 1)


def _print_row(row: Row, depth: int, final: str) -> None:
    verdict = row["verdict"] or ""
    color = COLORS.get(Verdict(verdict)) if verdict else None
    estimate = read_estimate(row)
    why = row["reason"] or (estimate.text() if estimate else "")
    if row["duplicate_of"]:
        why = f"same as {row['duplicate_of']}"
    head = f"{'  ' * depth}{row['candidate_id']:<6} {row['kind']:<8} "
    parts: list[tuple[str, dict[str, Any]]] = [(on_one_line(str(why), LONGEST_WHY), {})]
    if row["name"] and not row["duplicate_of"]:
        parts.append((on_one_line(str(row["name"]), LONGEST_NAME), {"dim": True}))
    parts.append((final, {"bold": True}))
    verdict = verdict or "not judged"
    lines = _lay_out(len(head + verdict), [part for part in parts if part[0]], 2 * depth + 7)
    click.echo(head + style(verdict, fg=color) + "\n".join(lines))


def _lay_out(taken: int, parts: Sequence[tuple[str, dict[str, Any]]], indent: int) -> list[str]:
    """Return lines with the parts; on a terminal, parts that don't fit get lines of their own."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = [""]
    for text, look in parts:
        if columns is None or taken + len(GAP + text) <= columns:
            lines[-1] += GAP + style(text, **look)
            taken += len(GAP + text)
            continue
        folded = fold(text, " " * indent).splitlines()
        lines += [" " * indent + style(line.strip(), **look) for line in folded]
        taken = len(folded[-1])
    return lines


def read_estimate(row: Row) -> Estimate | None:
    """Return a candidate's speed relative to the base, if it was timed."""
    ratio, low, high = (row.get(name) for name in ("ratio", "low", "high"))
    if ratio is None or low is None or high is None:
        return None
    return Estimate(ratio, low, high, row.get("sessions") or 0, 0.95)


def find_candidate(folder: Path, wanted: str) -> tuple[Row, str]:
    """Return a candidate and its diff, by its id, or ``RUN_ID/ID`` if several runs have it."""
    run_id, _, id = wanted.rpartition("/")
    rows = [row for row in read_candidates(folder, run_id) if row["candidate_id"] == id]
    if len(rows) != 1:
        hint = ", ".join(f"{row['run_id']}/{id}" for row in rows[:3])
        message = f"there is no candidate '{wanted}'" if not rows else f"several runs have a '{id}'"
        raise StudyError(Mistake((), message, hint or "`fairtrial show DIR` lists them"))
    with open_results(folder) as results:
        return rows[0], _find_diff(results, rows[0])


def _find_diff(results: Results, row: Row) -> str:
    for result in results:
        if result.run_id == row["run_id"]:
            for event in result.observations:
                meta = event.get("meta") or {}
                is_same = meta.get("candidate_id") == row["candidate_id"]
                if event.get("event_type") == "candidate" and is_same:
                    return str(event.get("text") or "")
    return ""


def print_candidate(row: Row, diff: str) -> None:
    """Print the columns of a candidate, and its diff."""
    for name, value in row.items():
        if value not in (None, ""):
            text = f"{value:.4g}" if isinstance(value, float) else "; ".join(str(value).split("\n"))
            print_wrapped(f"{name.replace('_', ' '):<13} {on_one_line(text, 2_000)}", "", " " * 14)
    click.echo(f"\n{harmless(diff.rstrip())}")

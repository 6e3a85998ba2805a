"""The tree of candidates of an optimisation, and one of them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import Estimate, Verdict, estimate_text
from fairtrial.cli.output import fold, harmless, print_wrapped, style
from fairtrial.cli.table import GAP
from fairtrial.cli.timing_text import COLOURS
from fairtrial.core import Mistake, StudyError, on_one_line
from fairtrial.study import Results, RunResult, Study, assigned_to, open_results

Row = Mapping[str, Any]
LONGEST_WHY, LONGEST_NAME, LONGEST_ERROR = 100, 60, 300


def read_candidates(folder: Path, run_id: str = "") -> list[Row]:
    """The rows of all runs, or of one; a `StudyError` if no run has any."""
    with open_results(folder) as results:
        rows: list[Row] = [row for row in results.candidates if row["run_id"].startswith(run_id)]
        failed = [each for each in results if each.error_info]
    if not rows:
        message = f"{folder} has no candidates to show"
        if failed:
            why = on_one_line(str(failed[0].error_info), LONGEST_ERROR)
            hint = f"its run failed: {why}: `fairtrial show {folder} {failed[0].run_id}`"
            raise StudyError(Mistake((), message, hint))
        hint = (
            "those of an optimisation are told when it is done; a run is shown by "
            "`fairtrial show DIR RUN_ID`"
        )
        raise StudyError(Mistake((), message, hint))
    return rows


def print_tree(folder: Path, rows: Sequence[Row]) -> None:
    """Run by run, line by line: what came of what, and what became of it."""
    heads = _read_heads(folder)
    for run_id in dict.fromkeys(row["run_id"] for row in rows):
        head = heads[run_id]
        click.echo(style(run_id, bold=True) + head.told)
        own = [row for row in rows if row["run_id"] == run_id]
        for row, depth in _descend(own, None, 1):
            _print_row(row, depth, head.ends.get(row["candidate_id"], ""))


@dataclass(frozen=True, slots=True)
class Head:
    """A run above its candidates.

    told: under which condition it was
    ends: what was said in the end of the candidate that it hands over, and of those before it
    """

    told: str
    ends: Mapping[str, str]


def _read_heads(folder: Path) -> dict[str, Head]:
    with open_results(folder) as results:
        conditions = {each.condition_id: each.factor_assignments for each in results.conditions}
        is_study = len(results.reader.plan) > 1
        shown = conditions if is_study else {}
        return {each.run_id: head_of(each, results.study, shown) for each in results}


def head_of(result: RunResult, study: Study, conditions: Mapping[str, Mapping[str, Any]]) -> Head:
    """What stands above the candidates of a run; conditions: what each of them assigns."""
    spec, outputs = result.run_spec, result.outputs
    told = ""
    if spec is not None and conditions:
        assigned = conditions.get(spec.condition_id, {})
        factors = assigned_to(study, spec.agent_spec_ref, assigned)
        named = [f"{name.rpartition('.')[2]}={value}" for name, value in factors.items()]
        who = [spec.agent_spec_ref or "", spec.problem_id or "", f"replicate {spec.replicate}"]
        told = "  " + ", ".join([*named, *filter(None, who)])
    ends = {
        id: f"<- out: {on_one_line(str(why), LONGEST_WHY)}"
        for id, why in (outputs.get("out") or {}).items()
    }
    if outputs.get("best"):
        final = estimate_text(estimate_of(outputs))
        ends[outputs["best"]] = f"<- the best: {final} when measured again"
    return Head(told, ends)


def _descend(rows: Sequence[Row], parent: str | None, depth: int) -> Iterator[tuple[Row, int]]:
    for row in rows:
        if (row["parent_id"] or None) == parent:
            yield row, depth
            yield from _descend(rows, row["candidate_id"], depth + 1)


def _print_row(row: Row, depth: int, final: str) -> None:
    verdict = row["verdict"] or ""
    colour = COLOURS.get(Verdict(verdict)) if verdict else None
    why = row["reason"] or estimate_text(estimate_of(row))
    if row["duplicate_of"]:
        why = f"same as {row['duplicate_of']}"
    head = f"{'  ' * depth}{row['candidate_id']:<6} {row['kind']:<8} "
    parts: list[tuple[str, dict[str, Any]]] = [(on_one_line(str(why), LONGEST_WHY), {})]
    if row["name"] and not row["duplicate_of"]:
        parts.append((on_one_line(str(row["name"]), LONGEST_NAME), {"dim": True}))
    parts.append((final, {"bold": True}))
    verdict = verdict or "not judged"
    lines = _lay_out(len(head + verdict), [part for part in parts if part[0]], 2 * depth + 7)
    click.echo(head + style(verdict, fg=colour) + "\n".join(lines))


def _lay_out(taken: int, parts: Sequence[tuple[str, dict[str, Any]]], indent: int) -> list[str]:
    """Parts beside what stands there; on a terminal, those that don't fit on lines of their own."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = [""]
    for text, how in parts:
        if columns is None or taken + len(GAP + text) <= columns:
            lines[-1] += GAP + style(text, **how)
            taken += len(GAP + text)
            continue
        folded = fold(text, " " * indent).splitlines()
        lines += [" " * indent + style(line.strip(), **how) for line in folded]
        taken = len(folded[-1])
    return lines


def estimate_of(row: Row) -> Estimate | None:
    """How fast it is, if it was timed."""
    ratio, low, high = (row.get(name) for name in ("ratio", "low", "high"))
    if ratio is None or low is None or high is None:
        return None
    return Estimate(ratio, low, high, row.get("sessions") or 0, 0.95)


def find_candidate(folder: Path, wanted: str) -> tuple[Row, str]:
    """A candidate by its id, or by ``RUN_ID/ID`` where several runs have one, and its diff."""
    run_id, _, id = wanted.rpartition("/")
    rows = [row for row in read_candidates(folder, run_id) if row["candidate_id"] == id]
    if len(rows) != 1:
        found = ", ".join(f"{row['run_id']}/{id}" for row in rows[:3])
        message = f"there is no candidate '{wanted}'" if not rows else f"several runs have a '{id}'"
        raise StudyError(Mistake((), message, found or "`fairtrial show DIR` lists them"))
    with open_results(folder) as results:
        return rows[0], _find_diff(results, rows[0])


def _find_diff(results: Results, row: Row) -> str:
    for result in results:
        if result.run_id == row["run_id"]:
            for event in result.observations:
                meta = event.get("meta") or {}
                is_it = meta.get("candidate_id") == row["candidate_id"]
                if event.get("event_type") == "candidate" and is_it:
                    return str(event.get("text") or "")
    return ""


def print_candidate(row: Row, diff: str) -> None:
    """All that is known of one, and its diff."""
    for name, value in row.items():
        if value not in (None, ""):
            told = f"{value:.4g}" if isinstance(value, float) else "; ".join(str(value).split("\n"))
            print_wrapped(f"{name.replace('_', ' '):<13} {on_one_line(told, 2_000)}", "", " " * 14)
    click.echo(f"\n{harmless(diff.rstrip())}")

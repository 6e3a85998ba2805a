"""How a run of a study ended, for people and programs."""

from __future__ import annotations

import heapq
import itertools
import shlex
from collections.abc import Mapping
from typing import Any

import click

from fairtrial.cli.output import count, note, print_json, print_wrapped, shown_path, style
from fairtrial.cli.resume_command import resume_command
from fairtrial.study import Results, RunSettings, RunStatus, Summary, spell_cost

FAILED, BUDGET, INTERRUPTED = 5, 6, 130
WRONG = (RunStatus.FAILED, RunStatus.BROKEN)
MOST_ERRORS = 5
MOST_READ = 1_000
"""How many failures are read to find those that are alike."""
WHY = {
    "budget": "a budget is used up; raise it to go on",
    "failure": "stopped at the first failure, as fail_fast asks",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
}


def print_outcome(
    results: Results,
    *,
    as_json: bool,
    allow_failures: bool,
    is_pilot: bool,
    settings: RunSettings | None = None,
) -> int:
    """Say what came of it and where it is; returns the exit code.

    settings: those that it should go on with
    """
    summary = results.reader.summary()
    code = _exit_code(results.stopped, summary, allow_failures=allow_failures)
    if as_json:
        print_json(_as_json(results, summary, code))
        return code
    folder = shlex.quote(shown_path(results.folder))
    click.echo(_counts(summary))
    _print_errors(results, summary)
    if summary.left_out:
        note(f"{count(summary.left_out, 'result')} of runs that are no longer in the plan left out")
    if results.stopped is not None:
        note(WHY[results.stopped])
    if summary.pending and not summary.is_running:
        why = "this was a pilot: " if is_pilot and results.stopped is None else ""
        command = resume_command(results.folder, results.study, summary, settings)
        note(f"{why}{count(summary.pending, 'run')} to go: {command}")
    click.echo(f"results: {shown_path(results.folder)}")
    if summary.done:
        click.echo(f"next:    fairtrial report {folder}")
    if any(summary.counts.get(status) for status in WRONG):
        failed = " --failed" if summary.counts.get("failed") else ""
        click.echo(f"again:   fairtrial retry {folder}{failed}")
    return code


def _exit_code(stopped: str | None, summary: Summary, *, allow_failures: bool) -> int:
    if stopped in ("interrupted", "cancelled"):
        return INTERRUPTED
    if stopped == "budget":
        return BUDGET
    has_failed = summary.counts.get("failed", 0) or summary.counts.get("broken", 0)
    return FAILED if has_failed and not allow_failures else 0


def _counts(summary: Summary) -> str:
    parts = [
        style(f"{number:,} {status}", fg=COLOURS.get(status))
        for status, number in best_first(summary.counts)
        if number
    ]
    spent = [spell_cost(summary.cost_usd)] if summary.cost_usd else []
    spent += [count(summary.tokens, "token")] if summary.tokens else []
    text = f"{summary.done:,} of {count(summary.planned, 'run')} done: {', '.join(parts) or 'none'}"
    return f"{text} ({', '.join(spent)})" if spent else text


COLOURS = {"success": "green", "failed": "red", "broken": "yellow"}


def best_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Successes before failures, and those before what broke."""
    ranks = [*COLOURS, *counts]
    return sorted(counts.items(), key=lambda each: ranks.index(each[0]))


def _print_errors(results: Results, summary: Summary) -> None:
    """The first few failures: nobody should have to look for what went wrong."""
    wrong = summary.counts.get("failed", 0) + summary.counts.get("broken", 0)
    if not wrong:
        return
    reader = results.reader
    turns = (turn for status in WRONG for turn in reader.turns_with(status))
    alike: dict[str, list[str]] = {}
    for place in heapq.nsmallest(MOST_READ, (reader.order[turn] for turn in turns)):
        result = reader.result(place)
        if result is None:  # somebody runs it again already
            continue
        why = (result.error_info or "").partition("\n")[0]
        alike.setdefault(f"{result.status}, {result.failure_kind}: {why}", []).append(result.run_id)
    shown = 0
    for why, run_ids in itertools.islice(alike.items(), MOST_ERRORS):
        others = f" and {len(run_ids) - 1:,} more" if len(run_ids) > 1 else ""
        print_wrapped(f"{run_ids[0]}{others} {why}", "  ", "    ")
        shown += len(run_ids)
    if wrong > shown:
        click.echo(f"  ... and {wrong - shown:,} others, in runs.csv")
    first = next(iter(alike.values()), [""])[0]
    click.echo(f"  see      fairtrial show {shlex.quote(shown_path(results.folder))} {first}")


def summary_facts(summary: Summary) -> dict[str, Any]:
    """A summary for programs; the last session's provenance is in the manifest."""
    facts = summary.to_dict()
    if facts["last_session"] is not None:
        facts["last_session"] = {**facts["last_session"]}
        del facts["last_session"]["provenance"]
    return facts


def _as_json(results: Results, summary: Summary, code: int) -> dict[str, Any]:
    return {
        "ok": code == 0,
        "exit_code": code,
        "study_id": results.study.study_id,
        "stopped": results.stopped,
        **summary_facts(summary),
        "output_dir": str(results.folder),
    }

"""The summary that is printed when a session of a study ends."""

from __future__ import annotations

import heapq
import itertools
import shlex
from collections.abc import Mapping
from typing import Any

import click

from fairtrial.cli.output import count, note, print_json, print_wrapped, shown_path, style
from fairtrial.cli.resume_command import resume_command
from fairtrial.study import Results, RunStatus, ledger, runner, spell_cost

LAB, FAILED, BUDGET, REPEATED, INTERRUPTED = 4, 5, 6, 8, 130
UNSUCCESSFUL = (RunStatus.FAILED, RunStatus.BROKEN)
SHOWN_ERRORS = 5
MAX_READ = 1_000
"""How many failures are read to group equal ones."""
STOP_REASONS = {
    "budget": "a budget is used up; raise it to continue",
    "failure": "stopped at the first failure, as fail_fast asks",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "repeated": "paused, since the others would probably end like this",
    "refused": "stopped at once, since other runs would end like this",
}
ENDED_WORDS = {
    "failure": "first failure",
    "budget": "budget used up",
    "repeated": "repeated failures",
    "refused": "key refused",
}
"""How a session ended, in a word or two, where its key says too little."""


def print_outcome(
    results: Results,
    *,
    as_json: bool,
    allow_failures: bool,
    is_pilot: bool,
    settings: runner.RunSettings | None = None,
    mended: str = "",
) -> int:
    """Print counts, errors, and where the results are; returns the exit code.

    is_pilot: whether only some of the runs were selected
    settings: settings that the printed resume command repeats
    mended: the command that continues after the study file was changed; empty if that isn't known
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
    if summary.decided_early and not summary.pending:
        saved = count(summary.decided_early, "planned run")
        note(f"stopped early: the claims are decided, and {saved} not needed")
    is_paused = results.stopped in ("repeated", "refused")
    if results.stopped is not None:
        _print_stop(results, summary, folder, mended)
    if summary.pending and not summary.is_running and not is_paused:
        prefix = "this was a pilot: " if is_pilot and results.stopped is None else ""
        command = resume_command(results.folder, results.study, summary, settings)
        note(f"{prefix}{count(summary.pending, 'run')} to go: {command}")
    click.echo(f"results: {shown_path(results.folder)}")
    if summary.done > summary.counts.get("broken", 0):
        click.echo(f"next:    fairtrial report {folder}")
    if any(summary.counts.get(status) for status in UNSUCCESSFUL) and not is_paused:
        failed = " --failed" if summary.counts.get("failed") else ""
        click.echo(f"again:   fairtrial retry {folder}{failed}")
    return code


def _print_stop(results: Results, summary: ledger.Summary, folder: str, mended: str) -> None:
    """Print why a study stopped before its end, and how to go on."""
    reason = STOP_REASONS.get(results.stopped or "", "")
    note("; ".join(filter(None, [results.stop_reason, reason])))
    if results.stopped not in ("repeated", "refused"):
        return
    go_on = f"fairtrial resume {folder}"
    if results.stopped == "repeated" and summary.counts.get("failed"):
        go_on = f"fairtrial retry {folder} --failed; {go_on}"
    elif mended:
        go_on = mended  # reads the study file again
    note(f"mend it, then:   {go_on}")
    note(f"or all the same: fairtrial resume {folder} --keep-going")


def _exit_code(stopped: str | None, summary: ledger.Summary, *, allow_failures: bool) -> int:
    if stopped in ("interrupted", "cancelled"):
        return INTERRUPTED
    codes = {"budget": BUDGET, "repeated": REPEATED, "refused": LAB}
    if stopped in codes:
        return codes[stopped]
    has_failed = summary.counts.get("failed", 0) or summary.counts.get("broken", 0)
    return FAILED if has_failed and not allow_failures else 0


def _counts(summary: ledger.Summary) -> str:
    parts = [
        style(f"{number:,} {status}", fg=COLORS.get(status))
        for status, number in best_first(summary.counts)
        if number
    ]
    costs = [spell_cost(summary.cost_usd)] if summary.cost_usd else []
    costs += [count(summary.tokens, "token")] if summary.tokens else []
    text = f"{summary.done:,} of {count(summary.planned, 'run')} done: {', '.join(parts) or 'none'}"
    return f"{text} ({', '.join(costs)})" if costs else text


COLORS = {"success": "green", "failed": "red", "broken": "yellow"}


def best_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return statuses with their counts: successful first, then failed, then broken runs."""
    ranks = [*COLORS, *counts]
    return sorted(counts.items(), key=lambda item: ranks.index(item[0]))


def _print_errors(results: Results, summary: ledger.Summary) -> None:
    """Print the first few failures, equal ones together."""
    unsuccessful = summary.counts.get("failed", 0) + summary.counts.get("broken", 0)
    if not unsuccessful:
        return
    reader = results.reader
    indexes = (index for status in UNSUCCESSFUL for index in reader.indexes_with_status(status))
    groups: dict[str, list[str]] = {}
    for plan_index in heapq.nsmallest(MAX_READ, (reader.order[index] for index in indexes)):
        result = reader.result(plan_index)
        if result is None:  # another process has started to repeat it
            continue
        reason = (result.error_info or "").partition("\n")[0]
        message = f"{result.status}, {result.failure_kind}: {reason}"
        groups.setdefault(message, []).append(result.run_id)
    shown = 0
    for message, run_ids in itertools.islice(groups.items(), SHOWN_ERRORS):
        more = f" and {len(run_ids) - 1:,} more" if len(run_ids) > 1 else ""
        print_wrapped(f"{run_ids[0]}{more} {message}", "  ", "    ")
        shown += len(run_ids)
    if unsuccessful > shown:
        click.echo(f"  ... and {unsuccessful - shown:,} others, in runs.csv")
    first = next(iter(groups.values()), [""])[0]
    click.echo(f"  see      fairtrial show {shlex.quote(shown_path(results.folder))} {first}")


def summary_facts(summary: ledger.Summary) -> dict[str, Any]:
    """Return a summary as plain data, without the provenance, which is in the manifest."""
    facts = summary.to_dict()
    if facts["last_session"] is not None:
        facts["last_session"] = {**facts["last_session"]}
        del facts["last_session"]["provenance"]
    return facts


def _as_json(results: Results, summary: ledger.Summary, code: int) -> dict[str, Any]:
    return {
        "ok": code == 0,
        "exit_code": code,
        "study_id": results.study.study_id,
        "stopped": results.stopped,
        "stop_reason": results.stop_reason,
        **summary_facts(summary),
        "output_dir": str(results.folder),
    }

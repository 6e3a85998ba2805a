"""`fairtrial show`: the list of runs, one run with its attempts, or candidates."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.candidate_tree import (
    find_candidate,
    has_candidates,
    print_candidate,
    print_tree,
    read_candidates,
)
from fairtrial.cli.output import (
    count,
    folder_argument,
    harmless,
    json_option,
    print_json,
    style,
)
from fairtrial.cli.run_diff import show_diff
from fairtrial.cli.run_follow import find_current, find_run, follow_run
from fairtrial.cli.run_list import ListOptions, show_list
from fairtrial.cli.transcript_text import print_transcript
from fairtrial.core import Mistake, StudyError, on_one_line
from fairtrial.study import RunResult, agents, design, ledger, tables

LOCK = "lock"
MOST_EVENTS = 20
LONGEST_EVENT, LONGEST_TEXT = 100, 300


@click.command(
    name="show",
    epilog='Example: fairtrial show artifacts/my-study --where "score < 0.5" --sort -cost_usd',
    short_help="List runs, or show one, or candidates.",
)
@folder_argument
@click.argument("what", metavar="[RUN_ID|CANDIDATE|lock]", required=False)
@click.option("--failed", is_flag=True, help="List failed and broken runs only.")
@click.option("--where", metavar="EXPR", help="List the runs that meet an expression.")
@click.option("--sort", metavar="NAME", help="Sort them by a value; -NAME: descending.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="How many are listed; default: 20."
)
@click.option("--follow", is_flag=True, help="With RUN_ID: show the run live, while it goes on.")
@click.option(
    "--diff",
    nargs=2,
    metavar="A B",
    help="Show two runs side by side; A and B are ids of runs, levels of factors, or expressions.",
)
@json_option
def command(
    folder: Path,
    what: str | None,
    failed: bool,
    where: str | None,
    sort: str | None,
    limit: int | None,
    follow: bool,
    diff: tuple[str, str] | None,
    as_json: bool,
) -> None:
    """List the runs of a study, or show all that is known of one.

    Without an id: the runs that are done, or, of an optimization, the tree of its candidates. With
    one, of which the beginning is enough: outcome, conversation, output, traceback and attempts of
    a run; a candidate (0.1, or RUN_ID/0.1) with its verdict and diff. `lock` shows the lock of a
    study: its digests, when it was made, and the commit.
    """
    options = ListOptions(where, failed, sort, limit)
    if diff is not None:
        options.refuse("--diff")
        if what is not None or follow:
            raise StudyError(Mistake((), "--diff takes two runs, and nothing beside them"))
        show_diff(folder, *diff, as_json=as_json)
    elif follow:
        options.refuse("--follow")
        if what is None:
            hint = "`fairtrial show DIR` names those under way"
            raise StudyError(Mistake((), "--follow needs the id of a run", hint))
        follow_run(folder, what, as_json=as_json)
    elif what is None:
        _show_all(folder, options, as_json)
    elif what == LOCK:
        options.refuse("`lock`")
        _show_lock(folder, as_json)
    elif "." in what:
        options.refuse(f"{what}")
        row, text = find_candidate(folder, what)
        if as_json:
            print_json(json.loads(tables.as_json({**row, "diff": text})))
        else:
            print_candidate(row, text)
    else:
        options.refuse(f"{what}")
        _show_run(folder, what, as_json)


def _show_all(folder: Path, options: ListOptions, as_json: bool) -> None:
    """Show the candidates of an optimization, or the runs of another study."""
    if options.is_given or not has_candidates(folder):
        show_list(folder, options, as_json=as_json)
        return
    rows = read_candidates(folder)
    if as_json:
        print_json(json.loads(tables.as_json(rows)))
    else:
        print_tree(folder, rows)


def _show_lock(folder: Path, as_json: bool) -> None:
    reader = ledger.LedgerReader.open(folder)
    try:
        lock = ledger.read_lock(reader)
    finally:
        reader.close()
    if as_json:
        print_json({"lock": None if lock is None else lock.to_dict()})
        return
    for phrase in lock.describe() if lock is not None else ["no lock was recorded"]:
        click.echo(harmless(phrase))
    for name, digest in lock.parts.items() if lock is not None else ():
        click.echo(f"  {name.ljust(8)}  {digest}")


def _show_run(folder: Path, run_id: str, as_json: bool) -> None:
    reader = ledger.LedgerReader.open(folder)
    try:
        plan_index = find_run(reader, run_id)
        result = reader.result(plan_index)
        attempts = reader.attempts(reader.execution_indexes[plan_index])
        facts = {**_plan_facts(reader, plan_index), **_result_facts(result)}
        if result is None and (run := find_current(folder, facts["run_id"])) is not None:
            began = datetime.fromtimestamp(run["began"], UTC).isoformat(timespec="seconds")
            facts |= {"status": "running", "attempt": run["attempt"], "started_at": began}
            index = reader.execution_indexes[plan_index]
            facts["events"] = reader.events(index, int(run["attempt"]))
    finally:
        reader.close()
    facts["attempts"] = [_attempt_facts(attempt) for attempt in attempts]
    if as_json:
        print_json(json.loads(tables.as_json(facts)))
    else:
        _print(facts)


def _plan_facts(reader: ledger.LedgerReader, plan_index: int) -> dict[str, Any]:
    spec, condition = reader.plan.spec(plan_index), reader.plan.condition_at(plan_index)
    return {
        "run_id": spec.run_id,
        "status": "skipped" if reader.plan.is_skipped(plan_index) else "pending",
        "agent_id": spec.agent_spec_ref,
        "problem_id": spec.problem_id or None,
        "condition_id": spec.condition_id,
        "factors": design.select_assignments(
            reader.study, spec.agent_spec_ref, condition.factor_assignments
        ),
        "blocks": dict(condition.block_assignments),
        "replicate": spec.replicate,
        "seed": spec.seed,
    }


def _result_facts(result: RunResult | None) -> dict[str, Any]:
    if result is None:
        return {}
    return {
        "status": result.status.value,
        "failure_kind": None if result.failure_kind is None else result.failure_kind.value,
        "error": result.error_info,
        "attempt": result.attempt,
        "executor": result.executor,
        "host": result.host,
        "started_at": result.started_at,
        "ended_at": result.ended_at,
        "outputs": result.outputs,
        "metrics": result.metrics,
        "evaluations": list(result.evaluator_outputs),
        "workspace": list(result.artifact_refs),
        "events": list(result.observations),
        "traceback": result.traceback,
        "stdout": result.stdout,
        "stderr": result.stderr,
    }


def _attempt_facts(attempt: ledger.Attempt) -> dict[str, Any]:
    kind = attempt.failure_kind
    return {
        "attempt": attempt.attempt,
        "status": attempt.status.value,
        "failure_kind": None if kind is None else kind.value,
        "error": attempt.details.get("error_info"),
        "latency_s": attempt.latency_s,
        "traceback": attempt.details.get("traceback"),
        "stdout": attempt.stdout,
        "stderr": attempt.stderr,
    }


def _print(facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        if value in (None, "", [], {}):
            continue
        if name == "events":
            _print_events(value)
        elif name == "attempts":
            for attempt in value:
                click.echo(style(f"\nattempt {attempt.pop('attempt')}", bold=True))
                _print(attempt)
        elif name in ("traceback", "stdout", "stderr"):
            click.echo(style(f"\n{name}", bold=True))
            click.echo(textwrap.indent(harmless(value.rstrip("\n")), "  "))
        else:
            shown = (
                value if isinstance(value, str | int | float) else tables.as_json(_shorten(value))
            )
            click.echo(f"{name.replace('_', ' '):<13} {harmless(str(shown))}")


def _print_events(events: Sequence[dict[str, Any]]) -> None:
    transcript = agents.read_transcript(events)
    if transcript:
        click.echo(style("\nconversation", bold=True))
        print_transcript(transcript)
    events = [event for event in events if event.get("event_type") not in agents.TRANSCRIPT_TYPES]
    if not events:
        return
    click.echo(style(f"\n{count(len(events), 'event')}", bold=True))
    for event in events[:MOST_EVENTS]:
        text = on_one_line(str(event.get("text")), LONGEST_EVENT)
        meta = event.get("meta_json") or event.get("meta")
        facts = f"  {on_one_line(tables.as_json(meta), LONGEST_TEXT)}" if meta else ""
        line = f"  {event.get('timestamp')}  {event.get('event_type')}  {text}{facts}"
        click.echo(harmless(line))
    if len(events) > MOST_EVENTS:
        click.echo(f"  ... and {len(events) - MOST_EVENTS:,} more; --json prints them all")


def _shorten(value: Any) -> Any:
    """Return plain data with long texts cut, such as whole files."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_EVENT]}... ({len(value):,} characters; --json prints them all)"
    if isinstance(value, Mapping):
        return {name: _shorten(item) for name, item in value.items()}
    return [_shorten(item) for item in value] if isinstance(value, list | tuple) else value

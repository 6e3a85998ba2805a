"""A run shown live, while it goes on, for `fairtrial show --follow`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import harmless, style
from fairtrial.cli.transcript_text import TranscriptPrinter
from fairtrial.core import Mistake, StudyError, on_one_line
from fairtrial.study import agents, ledger, runner, tables

POLL_S = 0.5
LONGEST_TEXT = 200


def follow_run(folder: Path, run_id: str, *, as_json: bool) -> None:
    """Print what a run emits as it comes, until the run is done.

    as_json: print one line of JSON for each event

    Events of the executor `serial` come when the run is over; others come at once.
    """
    reader = ledger.LedgerReader.open(folder)
    try:
        plan_index = find_run(reader, run_id)
        index, full_id = reader.execution_indexes[plan_index], reader.plan.spec(plan_index).run_id
    finally:
        reader.close()
    attempt, seen, printer = 0, 0, TranscriptPrinter()
    while True:
        current = find_current(folder, full_id)
        is_running = current is not None or runner.read_status(folder).owner is not None
        reader = ledger.LedgerReader.open(folder)
        try:
            result = reader.result(plan_index)
            now = int(current["attempt"]) if current is not None else reader.last_attempt(index)
            if result is not None:
                now = result.attempt
            if now != attempt:
                if attempt:
                    _say(f"attempt {now}", as_json)
                attempt, seen, printer = now, 0, TranscriptPrinter()
            new = reader.events(index, attempt, seen)
        finally:
            reader.close()
        seen += len(new)
        for event in new:
            _print_event(event, printer, as_json)
        if result is not None:
            error = f": {result.error_info}" if result.error_info else ""
            _say(f"{result.status.value}{error}", as_json)
            return
        if not is_running:
            _say("the study isn't running, and this run isn't done", as_json)
            return
        time.sleep(POLL_S)


def _print_event(event: Mapping[str, Any], printer: TranscriptPrinter, as_json: bool) -> None:
    if as_json:
        click.echo(tables.as_json(event))
        return
    records = agents.read_transcript([event])
    if records:
        printer.print(records)
        return
    text = on_one_line(str(event.get("text")), LONGEST_TEXT)
    click.echo(harmless(f"  {event.get('timestamp')}  {event.get('event_type')}  {text}"))


def _say(text: str, as_json: bool) -> None:
    if not as_json:
        click.echo(style(harmless(text), bold=True))


def find_current(folder: Path, run_id: str) -> Mapping[str, Any] | None:
    """Return what is known of a run that is under way; None if it isn't."""
    status = runner.read_status(folder)
    if status.owner is None:
        return None
    return next((run for run, _ in status.current_runs() if run["run_id"] == run_id), None)


def find_run(reader: ledger.LedgerReader, run_id: str) -> int:
    """Return the plan index of the run whose id begins with this text."""
    wanted = run_id if run_id.startswith("run-") else f"run-{run_id}"
    matches = [
        (plan_index, spec.run_id)
        for plan_index, spec in enumerate(reader.plan.specs())
        if spec.run_id.startswith(wanted)
    ]
    if len(matches) == 1:
        return matches[0][0]
    if matches:
        names = ", ".join(name for _, name in matches[:5])
        raise StudyError(Mistake((), f"several runs begin with '{run_id}'", f"such as {names}"))
    hint = "runs.csv has the ids of those that are done; `fairtrial plan STUDY --runs FILE` all"
    raise StudyError(Mistake((), f"there is no run '{run_id}'", hint))

"""`fairtrial status`: how far a study has come, from any terminal, while it runs or afterwards."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import (
    count,
    fold_command,
    folder_argument,
    json_option,
    print_json,
    style,
)
from fairtrial.cli.resume_command import resume_command
from fairtrial.cli.run_summary import COLOURS, best_first, summary_facts
from fairtrial.sandbox import HostLock, say_who_times
from fairtrial.study import (
    LEDGER_NAME,
    LedgerReader,
    Study,
    Summary,
    owner_of,
    spell_cost,
    spell_rate,
    spell_time,
)

WATCH_S = 1.0
START_S, LOOK_S = 10.0, 0.1
ENDED = {
    "budget": "a budget is used up",
    "failure": "stopped at the first failure",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "error": "it ended with an error",
    None: "its process was killed",
}


@click.command(
    name="status",
    epilog="Example: fairtrial status artifacts/my-study --watch",
    short_help="Show how far a study has come.",
)
@folder_argument
@click.option("--watch", is_flag=True, help="Look again every second until it ends.")
@json_option
def command(folder: Path, watch: bool, as_json: bool) -> None:
    """Show how far a study has come: done, running, failed, rate, time left, cost.

    Only what is safely written down counts as done.
    """
    _wait_for_plan(folder)
    while True:
        owner = owner_of(folder)
        reader = LedgerReader.open(folder)
        try:
            summary, study = reader.summary(), reader.study
        finally:
            reader.close()
        is_left = owner is None and summary.pending
        go_on = resume_command(folder, study, summary) if is_left else None
        if as_json:
            print_json({"study_id": study.study_id, **summary_facts(summary), "go_on": go_on})
        else:
            if watch and owner is not None:
                click.clear()
            _print(study.study_id, summary, owner)
            if owner is not None and (taken := _taken(study, owner)):
                click.echo(f"  {taken}")
            if go_on is not None:
                click.echo(fold_command(go_on, "  go on    "))
        if not watch or owner is None:
            return
        time.sleep(WATCH_S)


def _wait_for_plan(folder: Path) -> None:
    """A study that was started just now has nothing to show before its plan is laid down."""
    until = time.monotonic() + START_S
    while owner_of(folder) is not None and not _has_plan(folder) and time.monotonic() < until:
        time.sleep(LOOK_S)


def _has_plan(folder: Path) -> bool:
    if not (folder / LEDGER_NAME).exists():
        return False
    reader = LedgerReader.open(folder)
    try:
        return reader.fact("study") is not None
    finally:
        reader.close()


def _print(study_id: str, summary: Summary, owner: dict[str, object] | None) -> None:
    live = summary.live or {}
    again: Mapping[str, int] = (live.get("again") or {}) if owner is not None else {}
    counts: Mapping[str, int] = live["settled"] if again else summary.counts
    click.echo(f"{style(study_id, bold=True)}: {_state(summary, owner)}")
    click.echo(f"  done     {sum(counts.values()):,} of {count(summary.planned, 'run')}")
    for status, number in best_first(counts):
        if number and status != "skipped":
            click.echo(f"  {style(status.ljust(8), fg=COLOURS.get(status))} {number:,}")
    for kind, number in summary.failures.items() if not again else ():
        click.echo(f"    {kind}: {number:,}")
    if again:
        told = ", ".join(f"{number:,} {status}" for status, number in again.items())
        click.echo(f"  again    {sum(again.values()):,} (so far {told})")
    if summary.skipped:
        click.echo(f"  skipped  {summary.skipped:,}")
    if owner is not None:
        click.echo(f"  running  {live.get('running', 0)}")
        if live.get("rate") and not live.get("paused"):
            click.echo(f"  rate     {spell_rate(live['rate'])}")
        left_s = _left_s(live)
        if left_s is not None:
            click.echo(f"  left     {spell_time(left_s)}")
    if summary.cost_usd:
        click.echo(f"  cost     {spell_cost(summary.cost_usd)}")
    if summary.tokens:
        click.echo(f"  tokens   {summary.tokens:,}")
    if owner is not None:
        for run in list(live.get("runs", ()))[:10]:
            age = spell_time(max(0.0, time.time() - run["began"]))
            who = " on ".join(filter(None, (run["agent_id"], run["problem_id"])))
            click.echo(f"    {run['run_id']}  {age}  {who}")


def _left_s(live: Mapping[str, Any]) -> float | None:
    """How long the rest will take, as of now; None if it should be over by now, or nobody knows."""
    told_s = live.get("eta_s")
    if told_s is None or live.get("paused"):
        return None
    left_s: float = told_s - max(0.0, time.time() - live.get("told", time.time()))
    return left_s if left_s >= 0.5 else None


def _taken(study: Study, owner: Mapping[str, object]) -> str:
    """Code problems wait while somebody else times, and a run that waits looks like one at work."""
    pid = owner.get("pid")
    is_here = isinstance(pid, int) and owner.get("host") == socket.gethostname()
    if not is_here or all(each.use != "code" for each in study.problems.values()):
        return ""
    return say_who_times(HostLock(), int(str(pid)))


def _state(summary: Summary, owner: dict[str, object] | None) -> str:
    if owner is not None:
        paused = ", paused" if (summary.live or {}).get("paused") else ""
        return f"running{paused} (process {owner.get('pid')} on {owner.get('host')})"
    if not summary.pending:
        return "finished"
    why = ENDED.get((summary.last_session or {}).get("ended_how", "done"))
    return f"not running ({why})" if why else "not running"

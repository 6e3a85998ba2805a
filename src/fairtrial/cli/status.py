"""`fairtrial status`: show the progress of a study, while it runs or afterwards."""

from __future__ import annotations

import itertools
import socket
import time
from pathlib import Path

import click

from fairtrial.cli.output import (
    count,
    fold_command,
    folder_argument,
    json_option,
    print_json,
    print_wrapped,
    style,
)
from fairtrial.cli.resume_command import needs_python, resume_command
from fairtrial.cli.run_summary import COLORS, best_first, summary_facts
from fairtrial.sandbox import HostLock
from fairtrial.study import runner, spell_cost

RESUME_IN_PYTHON = "from Python, with the same agents: run_study(study, resume=True, ...)"
WATCH_S = 1.0
SHOWN_RUNS = 10
ENDED = {
    "budget": "a budget is used up",
    "failure": "stopped at the first failure",
    "repeated": "paused: the first runs of an agent all failed in the same way",
    "refused": "an endpoint refused the key, or a quota is used up",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "error": "it ended with an error",
    None: "its process was killed",
}


@click.command(
    name="status",
    epilog="Example: fairtrial status artifacts/my-study --watch",
    short_help="Show the progress of a study.",
)
@folder_argument
@click.option("--watch", is_flag=True, help="Update every second until the study ends.")
@json_option
def command(folder: Path, watch: bool, as_json: bool) -> None:
    """Show the progress of a study: done, running, failed, rate, time left, cost.

    A run counts as done once its result is stored in the ledger.
    """
    while True:
        status = runner.read_status(folder)
        is_running = status.owner is not None
        is_resumable = not is_running and status.summary.pending
        in_python = bool(is_resumable) and needs_python(status.study)
        resume = None
        if is_resumable and not in_python:
            resume = resume_command(folder, status.study, status.summary)
        if as_json:
            facts = summary_facts(status.summary)
            lock = None if status.lock is None else status.lock.to_dict()
            print_json({"study_id": status.study.study_id, **facts, "go_on": resume, "lock": lock})
        else:
            if watch and is_running:
                click.clear()
            _print(status)
            if resume is not None:
                click.echo(fold_command(resume, "  resume   "))
            elif in_python:
                print_wrapped(RESUME_IN_PYTHON, "  resume   ", " " * 11)
        if not watch or not is_running:
            return
        time.sleep(WATCH_S)


def _print(status: runner.StudyStatus) -> None:
    summary, live, reruns = status.summary, status.live, status.reruns
    counts = live["settled"] if reruns else summary.counts
    click.echo(f"{style(status.study.study_id, bold=True)}: {_describe_state(status)}")
    click.echo(f"  done     {sum(counts.values()):,} of {count(summary.planned, 'run')}")
    for name, number in best_first(counts):
        if number and name != "skipped":
            click.echo(f"  {style(name.ljust(8), fg=COLORS.get(name))} {number:,}")
    for kind, number in summary.failures.items() if not reruns else ():
        click.echo(f"    {kind}: {number:,}")
    if reruns:
        previous = ", ".join(f"{number:,} {name}" for name, number in reruns.items())
        click.echo(f"  again    {sum(reruns.values()):,} (so far {previous})")
    if summary.skipped:
        click.echo(f"  skipped  {summary.skipped:,}")
    if summary.decided_early:
        click.echo(f"  saved    {summary.decided_early:,} (planned looks decided without them)")
    if status.owner is not None:
        place = f" ({live['place']})" if live.get("place") else ""
        click.echo(f"  running  {live.get('running', 0)}{place}")
        if status.rate_text:
            click.echo(f"  rate     {status.rate_text}")
        if status.left_text:
            click.echo(f"  left     {status.left_text}")
    if status.lock is not None and status.lock.is_explicit:  # the first run of any study makes one
        click.echo(f"  locked   {status.lock.at} ({status.lock.short_digest})")
    if summary.cost_usd:
        click.echo(f"  cost     {spell_cost(summary.cost_usd)}")
    if summary.tokens:
        click.echo(f"  tokens   {summary.tokens:,}")
    if status.owner is not None:
        _print_current_runs(status)


def _print_current_runs(status: runner.StudyStatus) -> None:
    for run, age in itertools.islice(status.current_runs(), SHOWN_RUNS):
        names = " on ".join(filter(None, (run["agent_id"], run["problem_id"])))
        click.echo(f"    {run['run_id']}  {age}  {names}")
    waiting = _describe_waiting(status)
    if waiting:
        click.echo(f"  {waiting}")


def _describe_waiting(status: runner.StudyStatus) -> str:
    """Return which other process holds the host lock for timing; empty if none does.

    Runs of code problems wait for that lock, and a waiting run looks like a working one.
    """
    owner = status.owner or {}
    pid = owner.get("pid")
    is_local = isinstance(pid, int) and owner.get("host") == socket.gethostname()
    if not is_local or all(problem.use != "code" for problem in status.study.problems.values()):
        return ""
    return HostLock().describe_timing_process(int(str(pid)))


def _describe_state(status: runner.StudyStatus) -> str:
    owner, summary = status.owner, status.summary
    if owner is not None:
        paused = ", paused" if status.is_paused else ""
        return f"running{paused} (process {owner.get('pid')} on {owner.get('host')})"
    if not summary.pending:
        return "stopped early: decided" if summary.decided_early else "finished"
    reason = ENDED.get((summary.last_session or {}).get("ended_how", "done"))
    return f"not running ({reason})" if reason else "not running"

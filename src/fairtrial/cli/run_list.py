"""The list of a study's runs, for `fairtrial show`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from fairtrial.cli.output import count, print_json, print_wrapped, shown_path, style
from fairtrial.cli.table import print_table
from fairtrial.core import Mistake, StudyError
from fairtrial.study import open_results, runner, tables

SHOWN, SHORTEST_ID = 20, 12
MOST_FACTORS, MOST_OUTCOMES = 4, 3


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which runs are listed, and how; fields as in `tables.list_runs`.

    limit: how many are shown; None for the default
    """

    where: str | None = None
    failed: bool = False
    sort: str | None = None
    limit: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether a list was asked for."""
        return self != ListOptions()

    def refuse(self, other: str) -> None:
        """Raise `StudyError` if these options were given together with something else."""
        if self.is_given:
            message = "--where, --failed, --sort and --limit list runs"
            raise StudyError(
                Mistake((), f"{message}, and {other} shows one thing", "leave one out")
            )


def show_list(folder: Path, options: ListOptions, *, as_json: bool) -> None:
    """Print the runs of a study that are done, one line each."""
    with open_results(folder) as results:
        listed = tables.list_runs(
            results, where=options.where, failed=options.failed, sort=options.sort
        )
        done, planned = len(results), results.reader.plan.runnable
        title, outcomes = results.study.study_id, [item.column for item in results.study.outcomes]
    if as_json:
        chosen = listed[: options.limit]
        runs = json.loads(tables.as_json([run.to_dict() for run in chosen]))
        print_json({"study_id": title, "runs": runs, "matching": len(listed), "done": done})
        return
    click.echo(f"{style(title, bold=True)}: {done:,} of {count(planned, 'run')} done")
    _print_current(folder)
    if not listed:
        nothing = "no run matches" if done else "nothing to show yet"
        click.echo(nothing)
        return
    shown = listed[: SHOWN if options.limit is None else options.limit]
    columns, rows = _lay_out(listed, shown, outcomes[:MOST_OUTCOMES], options)
    click.echo()
    advice = "--json has them all"
    print_table(columns, rows, total=len(shown), has_remark=True, advice=advice)
    more = len(listed) - len(shown)
    if more:
        print_wrapped(f"... and {more:,} more; --limit {len(listed)} lists them all")
    where = shown_path(folder)
    print_wrapped(f"one of them: fairtrial show {where} {shown[0].run_id if shown else 'RUN_ID'}")


def _print_current(folder: Path) -> None:
    status = runner.read_status(folder)
    if status.owner is None:
        return
    for run, age in list(status.current_runs())[:5]:
        names = " on ".join(filter(None, (run["agent_id"], run["problem_id"])))
        click.echo(f"  under way: {run['run_id']}  {age}  {names}  (--follow shows it live)")


def _lay_out(
    listed: Sequence[tables.ListedRun],
    shown: Sequence[tables.ListedRun],
    outcomes: Sequence[str],
    options: ListOptions,
) -> tuple[list[str], Iterator[list[object]]]:
    """Return the columns of a list and its rows: what differs between the runs, and the error."""
    names = ["run_id", "status"]
    ids = ("agent_id", "problem_id")
    names += [name for name in ids if len({run.facts[name] for run in listed}) > 1]
    factors = dict.fromkeys(
        name
        for run in listed
        for name, value in run.factors.items()
        if value not in (run.facts["agent_id"], run.facts["problem_id"])  # columns of their own
    )
    names += [f"factors.{name}" for name in list(factors)[:MOST_FACTORS]]
    if any(run.facts["replicate"] != 1 for run in listed):
        names.append("replicate")
    known = [name for name in outcomes if any(name in run.metrics for run in listed)]
    names += known
    if not known and any(run.facts["primary_outcome"] is not None for run in listed):
        names.append("primary_outcome")
    if any(run.facts["cost_usd"] for run in listed) and "cost_usd" not in names:
        names.append("cost_usd")
    asked = (options.sort or "").removeprefix("-")
    if asked and asked not in [name.removeprefix("factors.") for name in names]:
        names.insert(2, asked)
    if any(run.facts["error"] for run in shown):
        names.append("error")
    titles = {"agent_id": "agent", "problem_id": "problem", "primary_outcome": "outcome"}
    columns = [titles.get(name, name.removeprefix("factors.").rpartition(".")[2]) for name in names]

    size = _id_length(listed)

    def cells() -> Iterator[list[object]]:
        for run in shown:
            scope = {**run.scope(), "run_id": run.run_id[:size]}
            yield [
                run.factors.get(name.removeprefix("factors."))
                if name.startswith("factors.")
                else scope.get(name)
                for name in names
            ]

    return columns, cells()


def _id_length(listed: Sequence[tables.ListedRun]) -> int:
    """Return how much of the runs' ids tells them apart; that is enough to name one."""
    size = SHORTEST_ID
    while len({run.run_id[:size] for run in listed}) < len(listed):
        size += 1
    return size

"""`fairtrial evaluate`: candidates in, a verdict for each out."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairtrial.arena.evaluation import Evaluation, evaluate_candidates
from fairtrial.arena.proposals.candidates import read_candidate
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.tasks import single_cause
from fairtrial.cli.output import json_option, note, print_json, shown_path
from fairtrial.cli.verdicts import LiveTable, print_evaluation
from fairtrial.errors import LabError
from fairtrial.loading.problems import load_problem
from fairtrial.model.candidates import Candidate
from fairtrial.model.code import CodeProblem

if TYPE_CHECKING:
    import anyio


@click.command("evaluate")
@click.argument("problem", type=click.Path(path_type=Path), metavar="PROBLEM")
@click.argument("candidates", nargs=-1, type=click.Path(path_type=Path), metavar="[CANDIDATE]...")
@click.option(
    "--parallel-candidates",
    "slots",
    type=click.IntRange(1, 256),
    metavar="N",
    help="How many candidates are under way at once; default: one for each core.",
)
@json_option
@click.option("--keep-slots", is_flag=True, help="Leave the slots on disk, to look at.")
@click.option(
    "--unsandboxed",
    is_flag=True,
    help="Run candidates without a sandbox where there is none, or where the problem says plain.",
)
@click.option("--cold", is_flag=True, help="Start every check from nothing: slower, same verdicts.")
def command(
    problem: Path,
    candidates: tuple[Path, ...],
    slots: int | None,
    as_json: bool,
    keep_slots: bool,
    unsandboxed: bool,
    cold: bool,
) -> int:
    """Judge code candidates: does each still do what the base does?

    PROBLEM is a problem file. A CANDIDATE is a unified diff (.diff, .patch) or a folder of files
    that overlay the repository. Each is checked in a copy of the repository of its own; your files
    are never touched. Without candidates the base alone is checked.

    Exit code 0 means that all candidates were judged, whatever the verdicts.
    """
    loaded = load_problem(problem)
    read = [read_candidate(path) for path in candidates]
    live = LiveTable([each.name for each in read]) if sys.stderr.isatty() and not as_json else None
    settings = ArenaSettings(
        unsandboxed=unsandboxed,
        warm=not cold,
        keep_slots=keep_slots,
        say=live.say if live else lambda text: None if as_json else note(f"{text} ..."),
    )
    with live or nullcontext():
        evaluation = _evaluate(loaded, read, slots, settings, live)
    if as_json:
        print_json(evaluation.as_dict())
    else:
        print_evaluation(evaluation)
    if evaluation.kept is not None:
        note(f"the slots are in {shown_path(evaluation.kept)}; `fairtrial clean` removes them")
    if evaluation.is_complete:
        return 0
    if as_json:  # one document is all that is printed, and it says the same
        return LabError.exit_code
    raise LabError("some candidates could not be judged, through no fault of theirs; see above")


def _evaluate(
    problem: CodeProblem,
    candidates: Sequence[Candidate],
    slots: int | None,
    settings: ArenaSettings,
    live: LiveTable | None,
) -> Evaluation:
    """Run it to its end; Ctrl-C and SIGTERM end it with nothing left behind.

    Further ones change nothing: clearing up takes a moment, and `timeout` sends its own twice.
    """
    import anyio

    async def run() -> Evaluation | None:
        found: Evaluation | None = None
        stops = (signal.SIGINT, signal.SIGTERM)
        with anyio.open_signal_receiver(*stops) as told:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_end_when_told, told, tasks.cancel_scope)
                found = await evaluate_candidates(
                    problem,
                    candidates,
                    slots=slots,
                    settings=settings,
                    begun=live.begin if live else None,
                    judged=live.judge if live else None,
                )
                tasks.cancel_scope.cancel()
        return found

    try:
        evaluation = anyio.run(run)
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    if evaluation is None:
        raise KeyboardInterrupt
    return evaluation


async def _end_when_told(told: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    async for _ in told:
        scope.cancel()

"""`fairtrial optimize`: a problem in, the best candidate out as a patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import CodeProblem, delivery, require_editable_files
from fairtrial.cli.compare_arguments import CommandAfterDashes
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.optimize_errors import explain_failure, refer_to_flags
from fairtrial.cli.optimize_folder import choose_folder, is_outdated, may_change_study
from fairtrial.cli.optimize_hottest import (
    FoundBest,
    hottest_option,
    optimize_hottest,
    refuse_with_hottest,
)
from fairtrial.cli.optimize_progress import make_display
from fairtrial.cli.optimize_study import AGENT, get_options, make_study, optimizer_options
from fairtrial.cli.output import (
    json_option,
    note,
    print_json,
    print_wrapped,
    shown_path,
    style,
    warn,
)
from fairtrial.cli.problem_commands import load_with_warnings, print_notes
from fairtrial.cli.target_options import keep_draft, record_option, resolve_problem
from fairtrial.core import Mistake, StudyError, events
from fairtrial.optimize import OptimizationResult, Optimizer
from fairtrial.sandbox import find_sandbox
from fairtrial.study import RunResult, RunStatus, Study, runner

KEPT = "what was answered and judged is kept: the same command continues where it stopped"


@click.command(
    name="optimize",
    cls=CommandAfterDashes,
    epilog="Examples: fairtrial optimize src/shop/cart.py::Cart.total, fairtrial optimize "
    "problem.yaml --max-candidates 8",
    short_help="Search for faster code and confirm the winner.",
)
@click.argument(
    "problem", type=click.Path(path_type=Path), metavar="[PROBLEM|TARGET]", required=False
)
@hottest_option
@record_option
@optimizer_options
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of random choices.")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Where results go.")
@click.option("--branch", metavar="NAME", help="Commit the best on a new branch; no file changes.")
@click.option("--apply", "applies", is_flag=True, help="Apply the best candidate to your files.")
@json_option
def command(
    problem: Path | None,
    hottest: int | None,
    records: bool,
    seed: int,
    output: Path | None,
    branch: str | None,
    applies: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Search for faster code: an agent proposes, candidates are judged, timed, repaired, refined.

    PROBLEM is a problem file. A TARGET is a function (src/shop/cart.py::Cart.total or
    shop.cart:Cart.total): its tests are found, its calls recorded, and a problem file is drafted.

    Your files are never touched unless you say --apply: the best candidate is written as a patch,
    with an explanation. However it was stopped, the same command continues where it stopped;
    nothing is asked for, judged or paid for twice.
    """
    search = partial(
        _search,
        given=given,
        seed=seed,
        output=output,
        branch=branch,
        applies=applies,
        as_json=as_json,
    )
    if hottest is not None:
        refuse_with_hottest(problem, records=records, output=output, branch=branch, applies=applies)
        return optimize_hottest(hottest, search, unsandboxed=given["unsandboxed"], as_json=as_json)
    if problem is None:
        raise click.UsageError("give a PROBLEM or a TARGET, or --hottest N")
    problem = resolve_problem(
        problem, records=records, unsandboxed=given["unsandboxed"], as_json=as_json
    )
    best = search(problem)
    if best.error is not None:
        if not as_json:
            raise best.error
        print_json({"ok": False, "error": str(best.error), "output_dir": str(best.folder)})
        return best.error.exit_code
    if as_json:
        print_json(best.as_dict())
    return 0


def _search(
    problem: Path,
    *,
    given: Mapping[str, Any],
    seed: int,
    output: Path | None,
    branch: str | None,
    applies: bool,
    as_json: bool,
) -> FoundBest:
    """Optimize one problem, deliver its best candidate, and print the result."""
    loaded = load_with_warnings(problem)
    options = get_options(given)
    optimizer = _make_optimizer(options, loaded)
    _refuse_early(problem, loaded, branch, optimizer.unsandboxed)
    study = make_study(problem, loaded.problem_id, options, seed)
    default = Path("artifacts") / study.study_id
    delivers = applies or branch is not None
    folder = choose_folder(output, default, study, loaded, delivers=delivers)
    emit, display = make_display(optimizer.describe_duration(loaded), is_silent=as_json)
    with display:
        run_result, is_new = _run(study, optimizer, folder, emit)
    if run_result.status != RunStatus.SUCCESS:
        error = explain_failure(run_result.error_info or "", problem, optimizer.proposer)
        return FoundBest(problem, folder, error=error)
    result = OptimizationResult.from_output(run_result.outputs)
    assert result is not None, "the outputs of the agent `optimize` are those of an optimization"
    keep_draft(problem, folder)
    winner = None
    if result.edits is not None:
        winner = delivery.Delivery(
            loaded, result.edits, result.explanation, result.estimate, folder
        )
    done = _deliver(winner, branch, applies)
    if not as_json:
        if not is_new:
            outdated = is_outdated(folder, loaded)
            then = "for the project as it was then" if outdated else "and done with"
            note(f"found earlier, {then}; to look again, name a new --output")
            print_notes(result.notes)
        _print(result, winner, done, delivers=delivers)
    return FoundBest(problem, folder, result, winner, tuple(done), is_new)


def _make_optimizer(options: dict[str, Any], problem: CodeProblem) -> Optimizer:
    """Return the optimizer; raise a `StudyError` in the words of the command line."""
    try:
        optimizer = Optimizer(**options)
        optimizer.check_proposer(problem)
    except StudyError as error:
        proposer = options["proposer"]
        mistakes = [refer_to_flags(mistake, proposer) for mistake in error.mistakes]
        raise StudyError(mistakes) from None
    return optimizer


def _run(
    study: Study, optimizer: Optimizer, folder: Path, emit: events.Emit
) -> tuple[RunResult, bool]:
    """Run the study, or continue it; return its only result, and whether it is new."""
    new_results: list[RunResult] = []
    settings = runner.RunSettings(
        output_dir=folder,
        agent_bindings={AGENT: optimizer},  # it is built and checked already
        resume=True,
        retry="failed",  # its cause may have been corrected, in the problem's file for instance
        accept_changes=may_change_study(folder),
        executor="serial",
        on_result=new_results.append,
        on_event=emit,
        notify=lambda text: warn([text]),
    )
    try:
        results = runner.execute_study(study, settings)
    except KeyboardInterrupt:  # a second one ends it at once
        raise KeyboardInterrupt(KEPT) from None
    if results.stopped in ("interrupted", "cancelled"):
        raise KeyboardInterrupt(KEPT)
    (result,) = results
    return result, bool(new_results)


def _refuse_early(path: Path, problem: CodeProblem, branch: str | None, unsandboxed: bool) -> None:
    """Raise an error for what would fail in the end, before any work."""
    if not problem.can_time:
        message = "is empty, and no check runs pytest: nothing can be timed"
        hint = "name a call with inputs, or a command"
        raise StudyError(Mistake(("bench",), message, hint), source=str(path))
    require_editable_files(problem, str(path))
    find_sandbox(problem.sandbox, unsandboxed=unsandboxed)
    if branch is not None:
        run_interruptible(partial(delivery.Delivery.check_branch, problem, branch))


def _deliver(winner: delivery.Delivery | None, branch: str | None, applies: bool) -> list[str]:
    """Write the winner to files, and to the branch or project on request; return what was done."""
    if winner is None:
        return []
    winner.write_files()
    done = []
    if applies:
        done += run_interruptible(winner.apply)
    if branch is not None:
        done += run_interruptible(partial(winner.put_on_branch, branch))
    return done


def _print(
    result: OptimizationResult,
    winner: delivery.Delivery | None,
    done: Sequence[str],
    *,
    delivers: bool,
) -> None:
    """Print the result; `delivers`: whether a branch or changed files were asked for."""
    counts = f"{result.candidates} judged, {result.passed} passed their checks"
    if result.unjudged:
        counts += f", {result.unjudged} could not be judged, through no fault of theirs"
    print_wrapped(f"{counts}; why it ended: {result.why_over}")
    if winner is None:
        click.echo(style("None is worth taking.", bold=True))
        if delivers:
            click.echo("No branch was made, and no file was changed.")
    else:
        click.echo(style(f"The best is {result.best}: {result.speed_text}", bold=True))
        click.echo(f"patch:       {shown_path(winner.patch)}")
        click.echo(f"explanation: {shown_path(winner.description)}")
    for text in done:
        click.echo(text)

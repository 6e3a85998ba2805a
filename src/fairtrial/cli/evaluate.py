"""`fairtrial evaluate`: judge code candidates against their base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import (
    ArenaSettings,
    Basis,
    Evaluation,
    TimingFiles,
    evaluate_candidates,
    problem_files,
    read_candidates,
)
from fairtrial.cli.audit_text import audit_option
from fairtrial.cli.compare_arguments import CommandAfterDashes
from fairtrial.cli.evaluate_progress import EvaluationProgress, make_display
from fairtrial.cli.gate_options import GateOptions, gate_as_dict, gate_exit_code, gate_options
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import (
    count,
    json_option,
    labeled,
    note,
    print_json,
    shown_path,
    warn,
)
from fairtrial.cli.problem_commands import (
    base_option,
    errors_name,
    report_unusable,
    strict_paths_option,
    unsandboxed_option,
)
from fairtrial.cli.target_options import record_option, resolve_problem
from fairtrial.cli.timing_files import instructions_option, save_timings, timing_options
from fairtrial.cli.verdict_text import print_evaluation, print_verdicts
from fairtrial.core import FairtrialError, LabError, Mistake, StudyError

INTERRUPTED = 130


def _arena_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how candidates are judged; the command gets `settings`."""
    options: list[Callable[..., Any]] = [
        strict_paths_option,
        unsandboxed_option("candidates"),
        click.option(
            "--keep-slots",
            is_flag=True,
            help="Keep the slots on disk for inspection; each holds its last candidate.",
        ),
        click.option(
            "--check-only", is_flag=True, help="Don't time candidates that pass their checks."
        ),
        click.option(
            "--each",
            "times_each",
            is_flag=True,
            help="Time every candidate until it is decided; by default only the best is searched "
            "for.",
        ),
        instructions_option,
        audit_option,
        click.option(
            "--cold",
            is_flag=True,
            help="Start every check without a warm process: slower, same verdicts.",
        ),
        click.option(
            "--no-cache",
            is_flag=True,
            help="Run the base's checks anew, even if nothing has changed since the last time.",
        ),
    ]

    @wraps(command)
    def with_settings(
        *args: Any,
        check_only: bool,
        times_each: bool,
        no_audit: bool,
        cold: bool,
        no_cache: bool,
        instructions: bool,
        strict_paths: bool,
        keep_slots: bool,
        unsandboxed: bool,
        **kwargs: Any,
    ) -> Any:
        if instructions and check_only:
            message = "--instructions counts for candidates that are timed, "
            message += "and --check-only times none"
            raise StudyError(Mistake((), message, "leave one of them out"))
        settings = ArenaSettings(
            timing="none" if check_only else "each" if times_each else "race",
            audit=not no_audit,
            warm=not cold,
            cache=not no_cache,
            instructions=instructions,
            strict_paths=strict_paths,
            keep_slots=keep_slots,
            unsandboxed=unsandboxed,
        )
        return command(*args, settings=settings, **kwargs)

    wrapped: Callable[..., Any] = with_settings
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


@click.command(
    name="evaluate",
    cls=CommandAfterDashes,
    epilog="Example: fairtrial evaluate problem.yaml candidates/*.diff --parallel-candidates 4",
    short_help="Judge code candidates against their base.",
)
@click.argument("problem", type=click.Path(path_type=Path), metavar="PROBLEM|TARGET")
@click.argument("candidates", nargs=-1, metavar="[CANDIDATE]...")
@record_option
@base_option
@click.option(
    "--parallel-candidates",
    "slots",
    type=click.IntRange(1, 256),
    metavar="N",
    help="How many candidates are under way at once; default: one for each core.",
)
@json_option
@_arena_options
@timing_options
@gate_options
def command(
    problem: Path,
    candidates: tuple[str, ...],
    records: bool,
    base: str,
    slots: int | None,
    as_json: bool,
    settings: ArenaSettings,
    timing_files: TimingFiles,
    gate_choice: GateOptions,
) -> int:
    """Judge code candidates: does each still do what the base does, and is it faster?

    PROBLEM is a problem file, or a TARGET is a function (src/shop/cart.py::Cart.total) for which
    one is drafted. A CANDIDATE is a unified diff (.diff, .patch), a folder of files that
    overlay the repository, a git revision (my-branch, HEAD~2, stash@{0}), `.` for the tree as it
    is, or a range: main..HEAD judges HEAD against main, main...HEAD against their merge base.

    Each is checked in a copy of the repository of its own; your files are never touched. Those that
    pass are timed against the base, one at a time, with nothing else of fairtrial's running; the
    best is measured again. Without candidates the base alone is looked at.

    Exit code 0 means that all candidates were judged, whatever the verdicts; 2, that one of them is
    no diff, or doesn't apply; 7, that one fails what --fail-on names.
    """
    unsandboxed = settings.unsandboxed
    problem = resolve_problem(problem, records=records, unsandboxed=unsandboxed, as_json=as_json)
    loaded, warnings = problem_files.read_problem(problem)
    if base:
        loaded = replace(loaded, base=base)
    timing_files.check(instructions=settings.instructions)
    loaded, read = run_interruptible(partial(read_candidates, loaded, candidates))
    warn(warnings)
    display = make_display([candidate.name for candidate in read], is_silent=as_json)
    settings = replace(settings, max_regression=gate_choice.max_regression, emit=display.receive)
    if gate_choice.is_wanted and settings.timing == "race":
        settings = replace(settings, timing="each")
    try:
        with errors_name(problem), display:
            evaluation = run_interruptible(
                partial(evaluate_candidates, loaded, read, slots=slots, settings=settings)
            )
    except (KeyboardInterrupt, FairtrialError, OSError) as error:
        if as_json and (display.judged or not isinstance(error, FairtrialError)):
            return _print_known(error, display)
        if display.judged:  # what is known is not lost
            print_verdicts(display.judged)
            note(display.state)
        raise
    return _report(evaluation, loaded.min_effect, timing_files, gate_choice, as_json=as_json)


def _report(
    evaluation: Evaluation,
    min_effect: float,
    timing_files: TimingFiles,
    gate_choice: GateOptions,
    *,
    as_json: bool,
) -> int:
    """Print an evaluation, write the files that were asked for, and return the exit code."""
    gated = gate_choice.judge(evaluation.judgements, min_effect)
    if as_json:
        print_json({**evaluation.as_dict(), **gate_as_dict(gated)})
    else:
        print_evaluation(evaluation)
    if evaluation.kept is not None:
        note(f"the slots are in {shown_path(evaluation.kept)}; `fairtrial clean` removes them")
    try:  # after the verdicts, which a file that can't be written must not cost
        gate_choice.show(gated, as_json=as_json)
        save_timings(timing_files, evaluation.measurements, min_effect)
    except (FairtrialError, OSError) as error:
        if not as_json:
            raise
        note(labeled("error", str(error), "red"))
        return error.exit_code if isinstance(error, FairtrialError) else StudyError.exit_code
    if not evaluation.is_complete:
        if as_json:  # one document is all that is printed, and it says the same
            return LabError.exit_code
        raise LabError(_describe_unjudged(evaluation))
    return report_unusable(evaluation.judgements, as_json=as_json) or gate_exit_code(gated)


def _print_known(error: BaseException, display: EvaluationProgress) -> int:
    """Print what was judged before an error as one JSON document; return the exit code."""
    message = str(error) or "interrupted"
    known = [judgement.as_dict() for judgement in display.judged]
    print_json({"ok": False, "error": message, "mistakes": [], "candidates": known})
    if isinstance(error, FairtrialError):
        return error.exit_code
    return LabError.exit_code if isinstance(error, OSError) else INTERRUPTED


def _describe_unjudged(evaluation: Evaluation) -> str:
    """Return how many candidates could not be judged, and how many of these passed the checks."""
    lost = [judgement for judgement in evaluation.judgements if judgement.is_unjudged]
    untimed = sum(judgement.basis != Basis.NOTHING for judgement in lost)
    text = f"{len(lost)} of {count(len(evaluation.judgements), 'candidate')} could not be judged"
    if untimed:
        text += f" ({untimed} passed the checks and could not be timed)"
    return f"{text}, through no fault of theirs; see above"

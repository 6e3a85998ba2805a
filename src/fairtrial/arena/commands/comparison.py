"""Comparing commands: two or more command lines, or one command in two revisions."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from fairtrial.arena.commands.options import CommandOptions
from fairtrial.arena.commands.places import CommandPlace, Here, open_copies
from fairtrial.arena.commands.timer import CommandTimer, Run, TimedCommand
from fairtrial.arena.comparison import Comparison
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.timings import Arm, Measurement
from fairtrial.arena.model.verdicts import Basis, Failure, Reason, Rejection, Verdict
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.snapshot.repository import find_repository
from fairtrial.arena.snapshot.revisions import find_range, split_range
from fairtrial.arena.timing.decision import DecisionRules, measure
from fairtrial.arena.timing.stats.sequential import LOOKS
from fairtrial.arena.timing_phase import report_timing
from fairtrial.core import Mistake, StudyError, events, sequential
from fairtrial.sandbox import HostLock

MUCH_OUTPUT = 16 * 2**20
BASIS_NOTE = (
    "nothing was compared but exit statuses: whether both print and write the same was not checked"
)
FAILURES_NOTE = "--ignore-failure: whether the commands succeed was not looked at, either"
SHELL_NOTE = "starting the shell is part of each run"
SAME_FILES = "both revisions have the same files: there is nothing to time"
_BUDGET_HINT = "raise --budget to {} or more, or let the commands do less"


async def compare_commands(
    lines: Sequence[str],
    *,
    options: CommandOptions | None = None,
    settings: ArenaSettings | None = None,
) -> tuple[Comparison, ...]:
    """Time commands against the first of them, in the present folder and environment.

    They run as they are, without isolation or limits. Wall time decides; CPU time and peak memory
    have intervals, too.

    lines: two or more command lines
    settings: its `emit` gets phases and `TimingProgress`, its `lock_folder` counts; no more

    Returns one comparison for each command but the first. Raises `StudyError` if a command can't be
    started, fails in its first runs, or takes too long.
    """
    options, settings = options or CommandOptions(), settings or ArenaSettings()
    if len(lines) < 2:
        hint = "compare --command A --command B"
        raise StudyError(Mistake((), "a comparison needs two commands or more", hint))
    names = _distinct(lines)
    first, *others = (
        TimedCommand(name, options.split(line), Here(), options.preparing())
        for name, line in zip(names, lines, strict=True)
    )
    alpha = sequential.alpha_share(options.alpha, len(others))
    return tuple(
        [await _compare(first, other, "commands", options, alpha, settings) for other in others]
    )


async def compare_revisions(
    argv: Sequence[str],
    first: str,
    second: str | None = None,
    *,
    options: CommandOptions | None = None,
    folder: Path | None = None,
    settings: ArenaSettings | None = None,
) -> Comparison:
    """Time a command in one revision of a repository against the same command in another.

    Each revision is copied, and its command runs in a sandbox in the copy, with the project's
    Python first on the PATH and imports from the copy.

    argv: the command: a program and its arguments; with `shell` of the options, a line for it
    first, second: revisions, `.` for the tree as it is; without a second one, the first is a range
    folder: the folder in the repository where the command runs; by default the present one
    settings: options of the arena: `unsandboxed`, `emit`, `lock_folder`

    Raises `StudyError` if there is no such revision, or the command can't be started or fails in
    the first one. If it fails in the second one, the comparison says so.
    """
    options, settings = options or CommandOptions(), settings or ArenaSettings()
    folder = folder or Path.cwd()
    if not argv:
        raise StudyError(Mistake((), "there is no command after --"))
    await _require_repository(folder)
    names = await _resolve(folder, first, second)
    line = shlex.join(argv) if len(argv) > 1 else argv[0]
    words = options.split(line, "the command") if options.shell else tuple(argv)
    settings.emit(events.PhaseStarted(events.Phase.SNAPSHOT))
    async with open_copies(folder, names, unsandboxed=settings.unsandboxed) as copies:
        if copies.are_same:
            before, after = (_judge(name) for name in names)
            notes = (*copies.notes, SAME_FILES)
            return Comparison(line, before, after, None, notes, is_of_commands=True)
        places: tuple[CommandPlace, CommandPlace] = (copies.first, copies.second)
        one, two = (TimedCommand(p.name, words, p, options.preparing()) for p in places)
        return await _compare(one, two, line, options, options.alpha, settings, copies.notes)


async def _require_repository(folder: Path) -> None:
    """Raise `StudyError` if a folder lies in no repository."""
    try:
        repository = await find_repository(folder)
        if repository.is_made:
            raise StudyError("is in no git repository")
    except StudyError as error:
        reasons = "; ".join(mistake.message for mistake in error.mistakes)
        hint = "two commands need no repository: compare --command A --command B"
        raise StudyError(Mistake((), f"{folder} has no revisions: it {reasons}", hint)) from None


async def _resolve(folder: Path, first: str, second: str | None) -> tuple[str, str]:
    """Return the names of two revisions, or of those of a range."""
    if second is not None:
        for name in (first, second):
            if split_range(name) is not None:
                hint = "write its two sides, or nothing else beside it"
                raise StudyError(Mistake((), f"{name} is a range of revisions", hint))
        return first, second
    versions = await find_range(folder, first)
    if versions is None:
        hint = "compare A B -- COMMAND, or compare A..B -- COMMAND"
        raise StudyError(Mistake((), f"expected two revisions, got {first}", hint))
    return versions.base, versions.candidate


async def _compare(
    first: TimedCommand,
    second: TimedCommand,
    title: str,
    options: CommandOptions,
    alpha: float,
    settings: ArenaSettings,
    notes: Sequence[str] = (),
) -> Comparison:
    """Rehearse two commands, then time the second against the first."""
    lock = HostLock(settings.lock_folder, settings.emit)
    timer = CommandTimer(first, second, lock, ignores_failure=options.ignore_failure)
    settings.emit(events.PhaseStarted(events.Phase.BASE_TIMING))
    runs = await timer.rehearse(options.budget_s)
    judged = _judge(second.name)
    result: Measurement | Rejection | None = _find_rejection(first, second, runs, options)
    if result is None:
        _require_budget(timer, options.budget_s)
        settings.emit(events.PhaseStarted(events.Phase.PAIR_TIMING))
        rules = DecisionRules(
            alpha, options.min_effect, options.budget_s, max_regression=options.max_regression
        )
        watcher = report_timing(settings.emit)
        result = await measure(timer, second.name, None, rules, label="command", watcher=watcher)
    return Comparison(
        title,
        _judge(first.name),
        judged.with_timing(result),
        result if isinstance(result, Measurement) else None,
        (*notes, *_write_notes(timer, runs, options)),
        is_of_commands=True,
    )


def _judge(name: str) -> Judgement:
    return Judgement(name, "", Verdict.PASSED, Basis.EXIT_STATUS)


def _find_rejection(
    first: TimedCommand, second: TimedCommand, runs: dict[Arm, Run], options: CommandOptions
) -> Rejection | None:
    """Return a rejection if the second command fails in another revision.

    Raises `StudyError` for the first, and for a command that was given as such.
    """
    for arm, command in (("base", first), ("candidate", second)):
        run = runs["base" if arm == "base" else "candidate"]
        report = run.report
        is_own = report.get("prepared", True)
        is_fine = report.get("exit_code") == 0 and not report["stopped"]
        if is_fine or (
            options.ignore_failure and is_own and "exit_code" in report and not report["stopped"]
        ):
            continue
        what, hint = _explain(command, run, options)
        if arm == "base" or not command.place.name or not is_own:
            raise StudyError(Mistake((), what, hint))
        failure = Failure("command", shlex.join(command.argv), what)
        reason = Reason.TIMEOUT if report["stopped"] == "time" else Reason.CRASH
        return Rejection(reason, what, (failure,))
    return None


def _explain(command: TimedCommand, run: Run, options: CommandOptions) -> tuple[str, str]:
    """Return what is wrong with a run, and what to do."""
    is_own = run.report.get("prepared", True)
    words = command.argv if is_own else command.prepare or ()
    line = words[-1] if options.shell else shlex.join(words)
    where = f" in {command.place.name}" if command.place.name else ""
    ahead = f"in {command.place.name}, " if command.place.name else ""
    label = "" if is_own else "--prepare: "
    if run.is_missing:
        message = f"{label}there is no program '{words[0]}'{where}"
        return message, "name one on the PATH or by its path; words of a shell need --shell"
    message = f"{ahead}{label}'{line}' {run.describe_failure()}"
    if run.report["stopped"] == "time":
        hint = "its standard input is empty: if it waits for something else, it can't be timed; "
        return message, f"{hint}if it only takes long, raise --budget"
    if run.report["stopped"] == "output":
        return message, "have it print less: --shell, and '> /dev/null'"
    if run.report["start_error"]:
        return message, ""
    if not is_own:
        return message, "what prepares a run must exit with 0"
    return (
        message,
        "it must exit with 0 (standard input is empty); --ignore-failure times it anyway",
    )


def _require_budget(timer: CommandTimer, budget_s: float) -> None:
    """Raise `StudyError` if the budget can't hold the fewest sessions."""
    need_s = LOOKS[0] * sum(timer.usual_s.values())
    if need_s > budget_s:
        a, b = (f"{timer.usual_s[arm]:.3g} s" for arm in ("base", "candidate"))
        message = (
            f"a run takes {a} and {b}; {LOOKS[0]} pairs, the fewest that can decide anything, need "
            f"about {need_s:.3g} s, and the budget is {budget_s:g} s"
        )
        raise StudyError(Mistake((), message, _BUDGET_HINT.format(f"{1.5 * need_s:.0f}")))


def _write_notes(timer: CommandTimer, runs: dict[Arm, Run], options: CommandOptions) -> list[str]:
    notes = [BASIS_NOTE]
    if options.ignore_failure:
        notes.append(FAILURES_NOTE)
        for arm, command in (("base", timer.base), ("candidate", timer.candidate)):
            run = runs["base" if arm == "base" else "candidate"]
            if not run.has_succeeded:
                notes.append(f"{command.name} {run.describe_failure()}")
    if options.shell:
        notes.append(SHELL_NOTE)
    if not timer.judges_memory:
        notes.append(
            f"peak memory is not judged: both need less than the {timer.own_mb:.0f} MB of the "
            "process that starts them"
        )
    largest = max(sum(run.report.get("printed", [0])) for run in runs.values())
    if largest > MUCH_OUTPUT:
        notes.append(
            f"a run prints {largest / 2**20:,.0f} MB into a file, which is part of its time"
        )
    return notes


def _distinct(lines: Sequence[str]) -> list[str]:
    """Return a distinct name for each command: its line, with a number if it comes again."""
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        names.append(f"{line} ({number})" if line in names else line)
    return names

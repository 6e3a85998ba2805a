"""`fairtrial compare`: time one version against another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from fairtrial.arena import (
    ArenaSettings,
    Comparison,
    TimingFiles,
    compare_candidates,
    problem_files,
    suites,
)
from fairtrial.cli.audit_text import audit_option, summarize_audit
from fairtrial.cli.compare_arguments import (
    USAGE,
    CommandAfterDashes,
    names_suite,
    split_arguments,
    words_after_dashes,
)
from fairtrial.cli.compare_commands import (
    CommandChoice,
    command_options,
    compare_by_command,
    describe_clocks,
    print_files,
)
from fairtrial.cli.gate_options import GateOptions, gate_as_dict, gate_exit_code, gate_options
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import (
    json_option,
    print_json,
    print_wrapped,
    style,
    warn,
)
from fairtrial.cli.problem_commands import (
    choose_emit,
    errors_name,
    print_notes,
    report_unusable,
    strict_paths_option,
    unsandboxed_option,
)
from fairtrial.cli.table import cut_cell
from fairtrial.cli.target_options import resolve_problem
from fairtrial.cli.timing_files import (
    instructions_option,
    pytest_json_option,
    save_pytest_json,
    save_timings,
    timing_options,
)
from fairtrial.cli.timing_text import LONGEST_NAME, remark_lines
from fairtrial.cli.verdict_text import print_verdicts, shown_name
from fairtrial.core import LabError, Mistake, StudyError


@click.command(
    name="compare",
    cls=CommandAfterDashes,
    epilog="Examples: fairtrial compare main my-branch problem.yaml; "
    "fairtrial compare main . -- python -m shop --version; "
    "fairtrial compare --command 'sort a' --command 'sort -S1G a'",
    short_help="Time versions or commands against each other.",
)
@click.argument("words", nargs=-1, metavar="A B PROBLEM|TARGET")
@strict_paths_option
@json_option
@unsandboxed_option("candidates")
@timing_options
@pytest_json_option
@instructions_option
@audit_option
@command_options
@gate_options
def command(
    words: tuple[str, ...],
    strict_paths: bool,
    as_json: bool,
    unsandboxed: bool,
    timing_files: TimingFiles,
    instructions: bool,
    no_audit: bool,
    choice: CommandChoice,
    gate_choice: GateOptions,
    pytest_json: Path | None,
) -> int:
    """Time version B against version A: how many times as fast is B?

    A and B are git revisions (main, HEAD~2, stash@{0}), `.` for the tree as it is, diffs or
    folders as for `evaluate`, or the word `base`. A..B is the same as A B, and A...B compares B
    with the merge base of both. If A is a revision, it is the base: B must do what A does. Both are
    checked first.

    Without a problem, the words after -- are a command that is timed in both revisions, and
    commands given by --command are timed against the first of them, in the present folder: wall
    time, CPU time and peak memory.

    Exit code 0 means that both were judged, whatever the verdict is; 7, that B fails what --fail-on
    names.
    """
    settings = ArenaSettings(
        unsandboxed=unsandboxed,
        instructions=instructions,
        audit=not no_audit,
        strict_paths=strict_paths,
        max_regression=gate_choice.max_regression,
        emit=choose_emit(as_json=as_json),
    )
    if choice.lines or words_after_dashes():
        timing_files.check(instructions=instructions)
        comparisons = compare_by_command(choice, words, words_after_dashes(), settings)
        save_pytest_json(pytest_json, comparisons)
        return _report(comparisons, timing_files, gate_choice, choice.min_effect, as_json=as_json)
    choice.refuse_without_command()
    if len(words) == 2 and all(suites.is_pytest_json(Path(word)) for word in words):
        print_files(words, as_json=as_json)
        return 0
    given = split_arguments(words)
    if given.problem is None:
        message = "there is no problem, which says what is checked and timed"
        raise StudyError(Mistake((), message, f"write {USAGE}"))
    is_suite = names_suite(words)
    problem = given.problem
    if is_suite:
        loaded = suites.suite_problem(words[-1])
    else:
        problem = resolve_problem(problem, unsandboxed=unsandboxed, as_json=as_json)
        loaded, warnings = problem_files.read_problem(problem)
        warn(warnings)
    settings = replace(settings, audit=settings.audit and not is_suite)
    timing_files.check(instructions=instructions)
    loaded = loaded if choice.budget_s is None else replace(loaded, budget_s=choice.budget_s)
    with errors_name(problem):
        work = partial(compare_candidates, loaded, *given.versions, settings=settings)
        comparison = run_interruptible(work)
    save_pytest_json(pytest_json, [comparison])
    return _report([comparison], timing_files, gate_choice, loaded.min_effect, as_json=as_json)


def _report(
    comparisons: Sequence[Comparison],
    timing_files: TimingFiles,
    gate_choice: GateOptions,
    min_effect: float,
    *,
    as_json: bool,
) -> int:
    """Print comparisons, write the files that were asked for, and return the exit code."""
    measured = {
        f"{comparison.second.name} against {comparison.first.name}": comparison.measurement
        for comparison in comparisons
        if comparison.measurement is not None
    }
    if measured:
        save_timings(timing_files, measured, min_effect)
    sides = [side for comparison in comparisons for side in (comparison.first, comparison.second)]
    rejected = [comparison.first for comparison in comparisons if comparison.first.rejection]
    gated = gate_choice.judge([*(item.judged for item in comparisons), *rejected[:1]], min_effect)
    if as_json:
        documents = [comparison.as_dict() for comparison in comparisons]
        document = documents[0] if len(documents) == 1 else {"comparisons": documents}
        print_json({**document, **gate_as_dict(gated)})
    else:
        for comparison in comparisons:
            print_comparison(comparison)
    gate_choice.show(gated, as_json=as_json)
    if any(side.is_unjudged for side in sides):
        if as_json:
            return LabError.exit_code
        raise LabError("they could not be compared, through no fault of theirs; see above")
    return report_unusable(sides, as_json=as_json) or gate_exit_code(gated)


def print_comparison(comparison: Comparison) -> None:
    """Print how the second version compares with the first, or why they were not timed."""
    names = [shown_name(side.name) for side in (comparison.second, comparison.first)]
    if comparison.measurement is None:
        print_verdicts([comparison.first, comparison.second])
        sides = (comparison.first, comparison.second)
        rejected = [shown_name(side.name) for side in sides if side.rejection]
        if rejected:
            verb = "was" if len(rejected) == 1 else "were"
            print_wrapped(f"Not timed: {' and '.join(rejected)} {verb} rejected.")
    else:
        measured = comparison.measurement
        verdict = measured.verdict_text
        click.echo(style(f"{names[0]} against {names[1]}: {verdict}", bold=True))
        for line in remark_lines(measured, cut_cell(names[1], LONGEST_NAME)):
            click.echo(line)
        if comparison.is_of_commands:
            for text in describe_clocks(measured):
                print_wrapped(text, "  ", "    ")
    for text in summarize_audit(comparison.adequacy):
        print_wrapped(text)
    print_notes(comparison.notes)

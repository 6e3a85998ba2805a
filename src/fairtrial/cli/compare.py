"""`fairtrial compare`: time one version against another."""

from __future__ import annotations

from functools import partial

import click

from fairtrial.arena import (
    ArenaSettings,
    Comparison,
    TimingFiles,
    compare_candidates,
    read_problem,
)
from fairtrial.cli.audit_text import audit_option, summarize_audit
from fairtrial.cli.compare_arguments import USAGE, CommandAfterDashes, split_arguments
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
from fairtrial.cli.timing_files import instructions_option, save_timings, timing_options
from fairtrial.cli.timing_text import LONGEST_NAME, remark_lines
from fairtrial.cli.verdict_text import print_verdicts, shown_name
from fairtrial.core import LabError, Mistake, StudyError


@click.command(
    name="compare",
    cls=CommandAfterDashes,
    epilog="Example: fairtrial compare main my-branch problem.yaml",
    short_help="Time one version against another.",
)
@click.argument("words", nargs=-1, metavar="A B PROBLEM|TARGET")
@strict_paths_option
@json_option
@unsandboxed_option("candidates")
@timing_options
@instructions_option
@audit_option
@gate_options
def command(
    words: tuple[str, ...],
    strict_paths: bool,
    as_json: bool,
    unsandboxed: bool,
    timing_files: TimingFiles,
    instructions: bool,
    no_audit: bool,
    gate_choice: GateOptions,
) -> int:
    """Time version B against version A: how many times as fast is B?

    A and B are git revisions (main, HEAD~2, stash@{0}), `.` for the tree as it is, diffs or
    folders as for `evaluate`, or the word `base`. A..B is the same as A B, and A...B compares B
    with the merge base of both. If A is a revision, it is the base: B must do what A does. Both are
    checked first.

    Exit code 0 means that both were judged, whatever the verdict is; 7, that B fails what --fail-on
    names.
    """
    given = split_arguments(words)
    if given.problem is None:
        message = "there is no problem, which says what is checked and timed"
        raise StudyError(Mistake((), message, f"write {USAGE}"))
    problem = resolve_problem(given.problem, unsandboxed=unsandboxed, as_json=as_json)
    loaded, warnings = read_problem(problem)
    timing_files.check(instructions=instructions)
    warn(warnings)
    settings = ArenaSettings(
        unsandboxed=unsandboxed,
        instructions=instructions,
        audit=not no_audit,
        strict_paths=strict_paths,
        max_regression=gate_choice.max_regression,
        emit=choose_emit(as_json=as_json),
    )
    with errors_name(problem):
        work = partial(compare_candidates, loaded, *given.versions, settings=settings)
        comparison = run_interruptible(work)
    if comparison.measurement is not None:
        measured = {
            f"{comparison.second.name} against {comparison.first.name}": comparison.measurement
        }
        save_timings(timing_files, measured, loaded.min_effect)
    sides = (comparison.first, comparison.second)
    judged = [comparison.judged, *(side for side in sides[:1] if side.rejection)]
    gated = gate_choice.judge(judged, loaded.min_effect)
    if as_json:
        print_json({**comparison.as_dict(), **gate_as_dict(gated)})
    else:
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
    for text in summarize_audit(comparison.adequacy):
        print_wrapped(text)
    print_notes(comparison.notes)

"""`fairtrial compare`: time one candidate against another."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from fairtrial.arena import (
    ArenaSettings,
    Comparison,
    Reason,
    TimingFiles,
    compare_candidates,
    read_problem,
)
from fairtrial.cli.audit_text import audit_option, summarize_audit
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import (
    json_option,
    print_json,
    print_wrapped,
    style,
    warn,
)
from fairtrial.cli.problem_commands import choose_emit, print_notes, unsandboxed_option
from fairtrial.cli.table import cut_cell
from fairtrial.cli.timing_files import instructions_option, save_timings, timing_options
from fairtrial.cli.timing_text import LONGEST_NAME, remark_lines
from fairtrial.cli.verdict_text import print_verdicts, shown_name
from fairtrial.core import LabError


@click.command(
    name="compare",
    epilog="Example: fairtrial compare problem.yaml base candidates/faster",
    short_help="Time one candidate against another.",
)
@click.argument("problem", type=click.Path(path_type=Path), metavar="PROBLEM")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@json_option
@unsandboxed_option("candidates")
@timing_options
@instructions_option
@audit_option
def command(
    problem: Path,
    first: str,
    second: str,
    as_json: bool,
    unsandboxed: bool,
    timing_files: TimingFiles,
    instructions: bool,
    no_audit: bool,
) -> int:
    """Time candidate B against candidate A: how many times as fast is B?

    A and B are diffs or folders, as for `evaluate`, or the word `base`. Both are checked first.
    Exit code 0 means that both were judged, whatever the verdict is.
    """
    loaded, warnings = read_problem(problem)
    timing_files.check(instructions=instructions)
    warn(warnings)
    settings = ArenaSettings(
        unsandboxed=unsandboxed,
        instructions=instructions,
        audit=not no_audit,
        emit=choose_emit(as_json=as_json),
    )
    work = partial(compare_candidates, loaded, first, second, settings=settings)
    comparison = run_interruptible(work)
    if comparison.measurement is not None:
        measured = {
            f"{comparison.second.name} against {comparison.first.name}": comparison.measurement
        }
        save_timings(timing_files, measured, loaded.min_effect)
    if as_json:
        print_json(comparison.as_dict())
    else:
        print_comparison(comparison)
    rejections = [
        side.rejection for side in (comparison.first, comparison.second) if side.rejection
    ]
    if any(rejection.reason == Reason.EVALUATOR for rejection in rejections):
        if as_json:
            return LabError.exit_code
        raise LabError("they could not be compared, through no fault of theirs; see above")
    return 0


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

"""`fairtrial aa`: time the base against itself, to see how well this machine can time."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from fairtrial.arena import ArenaSettings, TimingFiles, self_test
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import (
    json_option,
    print_json,
    print_wrapped,
    style,
)
from fairtrial.cli.problem_commands import (
    choose_emit,
    load_with_warnings,
    print_notes,
    unsandboxed_option,
)
from fairtrial.cli.timing_files import save_timings, timing_options


@click.command(
    name="aa",
    epilog="Example: fairtrial aa --builtin",
    short_help="Time the base against itself: detectable effects.",
)
@click.argument("problem", type=click.Path(path_type=Path), metavar="[PROBLEM]", required=False)
@click.option("--builtin", is_flag=True, help="Time three functions that come with fairtrial.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(["words", "paths", "floats"]),
    help="Only this one of the three; may be given several times.",
)
@click.option(
    "--comparisons",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many times base and base are compared.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1),
    metavar="S",
    help="Stop after this many seconds, even if comparisons are left.",
)
@json_option
@unsandboxed_option("code")
@timing_options
def command(
    problem: Path | None,
    builtin: bool,
    only: tuple[str, ...],
    comparisons: int,
    seconds: float | None,
    as_json: bool,
    unsandboxed: bool,
    timing_files: TimingFiles,
) -> int:
    """Time the base against itself, in the same way as candidates are timed.

    Equal code must not be called faster or slower more often than alpha allows. The spread between
    sessions tells how small an effect can be detected on this machine, and how long that takes.
    """
    if builtin == (problem is not None):
        raise click.UsageError("give a PROBLEM, or --builtin, and not both")
    if only and not builtin:
        raise click.UsageError("--only is for --builtin: a problem's benchmarks are all timed")
    timing_files.check()
    settings = ArenaSettings(unsandboxed=unsandboxed, emit=choose_emit(as_json=as_json))
    with ExitStack() as opened:
        if problem is None:
            loaded = opened.enter_context(self_test.builtin_problem(*only))
        else:
            loaded = load_with_warnings(problem)
        most_s = float("inf") if seconds is None else seconds
        work = partial(
            self_test.check_clock,
            loaded,
            comparisons=comparisons,
            most_s=most_s,
            settings=settings,
        )
        result = run_interruptible(work)
    measurements = {f"aa-{number}": m for number, m in enumerate(result.measurements, 1)}
    save_timings(timing_files, measurements, result.min_effect)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_self_test(result)
    return 0


def _print_self_test(result: self_test.SelfTest) -> None:
    print_wrapped(result.describe_claims())
    print_wrapped(result.describe_noise())
    click.echo("\nEffects that are detected here with a power of 80 %:")
    for effect, text in result.describe_effects():
        click.echo(f"  {effect:>6}  {text}")
    if not result.can_be_trusted:
        text = (
            "Verdicts on this machine can't be trusted: equal code is called different too often."
        )
        print_wrapped(style(text, fg="red", bold=True))
    color = "green" if result.is_quiet_enough else "yellow"
    is_noisy = not result.is_quiet_enough and not result.is_budget_too_short
    print_wrapped(style(result.describe_machine(), fg=color, bold=is_noisy or None))
    print_notes(result.notes)

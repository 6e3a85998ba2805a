"""`fairtrial aa`: time the base against itself, to see how well this machine can time."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from fairtrial.arena import (
    ArenaSettings,
    Estimate,
    SelfTest,
    builtin_problem,
    check_clock,
    check_timing_options,
    estimate_text,
    read_problem,
)
from fairtrial.cli.event_text import print_event
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import (
    json_option,
    note,
    print_json,
    print_wrapped,
    style,
    warn,
)
from fairtrial.cli.timing_files import save_timings, timing_options
from fairtrial.cli.timing_text import percent_text, rough_seconds
from fairtrial.cli.verdict_text import LONGEST_NOTE
from fairtrial.core import events, on_one_line


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
@click.option(
    "--unsandboxed",
    is_flag=True,
    help="Run without a sandbox where there is none, or where the problem says plain.",
)
@timing_options
def command(
    problem: Path | None,
    builtin: bool,
    only: tuple[str, ...],
    comparisons: int,
    seconds: float | None,
    as_json: bool,
    unsandboxed: bool,
    samples: Path | None,
    plot: Path | None,
) -> int:
    """Time the base against itself, in the same way as candidates are timed.

    Equal code must not be called faster or slower more often than alpha allows. The spread between
    sessions tells how small an effect can be detected on this machine, and how long that takes.
    """
    if builtin == (problem is not None):
        raise click.UsageError("give a PROBLEM, or --builtin, and not both")
    if only and not builtin:
        raise click.UsageError("--only is for --builtin: a problem's benchmarks are all timed")
    check_timing_options(samples, plot)
    settings = ArenaSettings(
        unsandboxed=unsandboxed, emit=events.ignore_event if as_json else print_event
    )

    def show_progress(number: int, sessions: int, estimate: Estimate | None) -> None:
        if not as_json:
            note(
                f"{number + 1} of {comparisons}: {sessions} sessions, {estimate_text(estimate)} ..."
            )

    with ExitStack() as opened:
        if problem is None:
            loaded = opened.enter_context(builtin_problem(*only))
        else:
            loaded, warnings = read_problem(problem)
            warn(warnings)
        most_s = float("inf") if seconds is None else seconds
        work = partial(
            check_clock,
            loaded,
            comparisons=comparisons,
            most_s=most_s,
            settings=settings,
            progress=show_progress,
        )
        self_test = run_interruptible(work)
    measurements = {f"aa-{number}": m for number, m in enumerate(self_test.measurements, 1)}
    save_timings(measurements, samples, plot, self_test.min_effect)
    if as_json:
        print_json(self_test.as_dict())
    else:
        _print_self_test(self_test)
    return 0


def _print_self_test(self_test: SelfTest) -> None:
    rate = self_test.false_positives
    share = rate.count / rate.total
    claims = [measurement.verdict.value for measurement in self_test.measurements]
    kinds = ", ".join(f"{claims.count(kind)} {kind}" for kind in sorted(set(claims)))
    within = f"{percent_text(rate.low)} to {percent_text(rate.high)}"
    print_wrapped(
        f"{rate.total} comparisons of equal code: {kinds}. That is {percent_text(share)} wrong "
        f"claims ({within} with 95 % confidence); {percent_text(self_test.alpha)} are allowed."
    )
    print_wrapped(
        f"{len(self_test.statistics)} sessions of {self_test.session_s:.2f} s spread by "
        f"{percent_text(self_test.spread)}." + _describe_load(self_test)
    )
    click.echo("\nEffects that are detected here with a power of 80 %:")
    for effect, needed in self_test.list_seconds_needed().items():
        text = "not within 46 sessions" if needed is None else f"within {rough_seconds(needed)}"
        if needed is not None and needed > self_test.budget_s:
            text += f", more than budget_s ({self_test.budget_s:g} s) holds"
        click.echo(f"  {percent_text(effect):>6}  {text}")
    _print_advice(self_test, rate.low)
    for text in self_test.notes:
        print_wrapped(f"note: {on_one_line(text, LONGEST_NOTE)}", "", "  ")


def _describe_load(self_test: SelfTest) -> str:
    if self_test.load is None:
        return ""
    return (
        f" The machine's load was {self_test.load[0]:.1f} before and {self_test.load[1]:.1f} after."
    )


def _print_advice(self_test: SelfTest, lowest_rate: float) -> None:
    """Print whether this machine can detect the problem's `min_effect`."""
    min_effect, detectable = self_test.min_effect, self_test.visible_effect()
    smallest = self_test.visible_effect(float("inf"))
    if lowest_rate > self_test.alpha:
        text = (
            "Verdicts on this machine can't be trusted: equal code is called different too often."
        )
        print_wrapped(style(text, fg="red", bold=True))
    if detectable is not None and detectable <= min_effect:
        text = (
            f"Quiet enough to detect the min_effect of {percent_text(min_effect)} within budget_s."
        )
        print_wrapped(style(text, fg="green"))
        return
    if smallest is not None and smallest <= min_effect:
        needed = self_test.seconds_needed(min_effect)
        hint = "" if needed is None else f": set budget_s to {needed:.0f}"
        print_wrapped(
            style(
                f"The budget is too short for the min_effect of {percent_text(min_effect)}{hint}.",
                fg="yellow",
            )
        )
        return
    rest = (
        "" if smallest is None else f"; the smallest detectable effect is {percent_text(smallest)}"
    )
    text = f"This machine is too noisy for the min_effect of {percent_text(min_effect)}{rest}."
    print_wrapped(style(text, fg="yellow", bold=True))

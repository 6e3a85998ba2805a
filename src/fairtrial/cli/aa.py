"""`fairtrial aa`: the base against itself, to see what this machine's clock is worth."""

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
    print_json,
    print_wrapped,
    say,
    say_nothing,
    style,
    warn,
)
from fairtrial.cli.timing_files import save_timings, timing_options
from fairtrial.cli.timing_text import percent_text, rough_seconds
from fairtrial.cli.verdict_text import LONGEST_NOTE
from fairtrial.core import ignore_event, on_one_line


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
    help="Stop after so many seconds, whatever is left.",
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
    """Time the base against itself, as candidates are timed, and say what comes of it.

    Equal code must not be called faster or slower more often than alpha allows. The spread between
    sessions says how small an effect can be seen here, and in which time.
    """
    if builtin == (problem is not None):
        raise click.UsageError("give a PROBLEM, or --builtin, and not both")
    if only and not builtin:
        raise click.UsageError("--only is for --builtin: a problem's benchmarks are all timed")
    check_timing_options(samples, plot)
    tell = say_nothing if as_json else say
    settings = ArenaSettings(unsandboxed=unsandboxed, emit=ignore_event if as_json else print_event)

    def told(number: int, sessions: int, estimate: Estimate | None) -> None:
        tell(f"{number + 1} of {comparisons}: {sessions} sessions, {estimate_text(estimate)}")

    with ExitStack() as opened:
        if problem is None:
            loaded = opened.enter_context(builtin_problem(*only))
        else:
            loaded, doubts = read_problem(problem)
            warn(doubts)
        most_s = float("inf") if seconds is None else seconds
        work = partial(
            check_clock,
            loaded,
            comparisons=comparisons,
            most_s=most_s,
            settings=settings,
            progress=told,
        )
        found = run_interruptible(work)
    measured = {f"aa-{number}": each for number, each in enumerate(found.measurements, 1)}
    save_timings(measured, samples, plot, found.min_effect)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)
    return 0


def _print(found: SelfTest) -> None:
    rate = found.false_positives
    share = rate.count / rate.total
    claims = [each.verdict.value for each in found.measurements]
    kinds = ", ".join(f"{claims.count(kind)} {kind}" for kind in sorted(set(claims)))
    within = f"{percent_text(rate.low)} to {percent_text(rate.high)}"
    print_wrapped(
        f"{rate.total} comparisons of equal code: {kinds}. That is {percent_text(share)} wrong "
        f"claims ({within} with 95 % confidence), where {percent_text(found.alpha)} are allowed."
    )
    print_wrapped(
        f"{len(found.statistics)} sessions of {found.session_s:.2f} s spread by "
        f"{percent_text(found.spread)}." + _tell_load(found)
    )
    click.echo("\nWhat can be seen here four times out of five:")
    for effect, needed in found.list_seconds_needed().items():
        text = "not within 46 sessions" if needed is None else f"within {rough_seconds(needed)}"
        if needed is not None and needed > found.budget_s:
            text += f", more than budget_s ({found.budget_s:g} s) holds"
        click.echo(f"  {percent_text(effect):>6}  {text}")
    _print_advice(found, rate.low)
    for text in found.notes:
        print_wrapped(f"note: {on_one_line(text, LONGEST_NOTE)}", "", "  ")


def _tell_load(found: SelfTest) -> str:
    if found.load is None:
        return ""
    return f" The machine's load was {found.load[0]:.1f} before and {found.load[1]:.1f} after."


def _print_advice(found: SelfTest, lowest_rate: float) -> None:
    """Say whether this machine can detect the asked effect."""
    asked, visible = found.min_effect, found.visible_effect()
    most = found.visible_effect(float("inf"))
    if lowest_rate > found.alpha:
        text = "Claims made here can't be trusted: equal code is told apart too often."
        print_wrapped(style(text, fg="red", bold=True))
    if visible is not None and visible <= asked:
        text = f"Quiet enough for the asked {percent_text(asked)} within budget_s."
        print_wrapped(style(text, fg="green"))
        return
    if most is not None and most <= asked:
        needed = found.seconds_needed(asked)
        hint = "" if needed is None else f": budget_s: {needed:.0f} would do"
        print_wrapped(
            style(f"Too short a budget for the asked {percent_text(asked)}{hint}.", fg="yellow")
        )
        return
    seen = "" if most is None else f"; {percent_text(most)} is the least that can be seen"
    text = f"This machine is too noisy for the asked {percent_text(asked)}{seen}."
    print_wrapped(style(text, fg="yellow", bold=True))

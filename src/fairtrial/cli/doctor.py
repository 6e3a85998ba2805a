"""`fairtrial doctor`: what this machine can enforce and how well it can time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Literal

import click

from fairtrial.arena import (
    LOOKS,
    ArenaSettings,
    builtin_problem,
    check_clock,
    survey_machine,
)
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import fold, json_option, note, print_json, print_wrapped, style
from fairtrial.cli.timing_text import percent_text
from fairtrial.core import FairtrialError
from fairtrial.sandbox import HostFact, HostSurvey

COLORS = {"yes": "green", "partly": "yellow", "no": "red"}
NOT_FULL = 4
SECONDS, GOOD_EFFECT = 5.0, 0.05
REMEDY = " " * 10


@click.command(
    name="doctor",
    epilog="Example: fairtrial doctor",
    short_help="Show what this machine can enforce and how well it can time.",
)
@json_option
@click.option(
    "--quick", is_flag=True, help="Skip timing; the detectable effect is not measured then."
)
def command(as_json: bool, quick: bool) -> int:
    """Show what this machine can enforce on candidates, and how to get what is missing.

    Every sandbox is tried. Also shows what disturbs timing on this machine, the smallest effect
    that can be detected in five seconds, and whether instructions can be counted. Exits with 0 if
    candidates can run in a full sandbox, else with 4.
    """
    survey, clock = survey_machine()
    if not quick:
        if not as_json:
            note(f"timing a function against itself for {SECONDS:g} s ...")
        clock = (*clock, measure_detectable_effect())
    if as_json:
        facts = [asdict(fact) for fact in clock]
        print_json({"ok": survey.is_full, **asdict(survey), "clock": facts})
    else:
        _print_survey(survey, clock)
    return 0 if survey.is_full else NOT_FULL


def measure_detectable_effect() -> HostFact:
    """Time a built-in function against itself; return the effect that is detectable in 5 s."""
    name = "visible effect"
    settings = ArenaSettings(unsandboxed=True)
    try:
        with builtin_problem("words") as problem:
            work = partial(check_clock, problem, comparisons=99, most_s=SECONDS, settings=settings)
            self_test = run_interruptible(work)
    except FairtrialError as error:
        return HostFact(name, "no", f"nothing could be timed: {error}")
    sessions = f"{len(self_test.statistics)} sessions of {self_test.session_s:.2f} s"
    if not self_test.has_enough_sessions:
        detail = f"only {sessions} fit into {SECONDS:g} s, and it takes {LOOKS[0]}"
        return HostFact(name, "no", detail)
    effect = self_test.visible_effect(SECONDS)
    sessions += f" spread by {percent_text(self_test.spread)}"
    if effect is None:
        return HostFact(name, "no", f"{sessions}: none in {SECONDS:g} s")
    status: Literal["yes", "partly"] = "yes" if effect <= GOOD_EFFECT else "partly"
    remedy = "" if status == "yes" else "Let nothing else run while candidates are timed."
    return HostFact(name, status, f"{percent_text(effect)} in {SECONDS:g} s ({sessions})", remedy)


def _print_survey(survey: HostSurvey, clock: Sequence[HostFact]) -> None:
    width = max(len(fact.name) for fact in (*survey.facts, *clock))
    click.echo(style("For candidates that run", bold=True))
    for fact in survey.facts:
        _print_fact(fact, width)
    click.echo()
    click.echo(style("For candidates that are timed", bold=True))
    for fact in clock:
        _print_fact(fact, width)
    click.echo()
    if survey.is_full:
        click.echo(f"`sandbox: auto` uses {style(survey.sandbox, bold=True)}, a full sandbox.")
    else:
        print_wrapped(
            "No full sandbox works here. Candidates would run with all of your permissions, and "
            "only if you pass --unsandboxed."
        )
    if survey.shortfalls:
        click.echo(f"What {survey.sandbox} can't prevent:")
    for shortfall in survey.shortfalls:
        print_wrapped(f"- {shortfall}", "  ", "    ")


def _print_fact(fact: HostFact, width: int) -> None:
    margin = " " * (len("partly") + 2 + width + 2)
    status = fact.status.ljust(len("partly"))
    text = fold(f"{status}  {fact.name.ljust(width)}  {fact.detail}", "", margin)
    click.echo(style(status, fg=COLORS[fact.status], bold=True) + text.removeprefix(status))
    for line in fact.remedy.splitlines():
        if line.startswith("$ "):
            click.echo(f"{REMEDY}{style(line, bold=True)}")  # a command to copy: not wrapped
        else:
            print_wrapped(line, REMEDY)

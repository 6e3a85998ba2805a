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
@click.option("--quick", is_flag=True, help="Time nothing: the visible effect isn't told then.")
def command(as_json: bool, quick: bool) -> int:
    """Say what this machine can enforce when candidates run, and how to get the rest.

    Sandboxes are really tried. Says as well what here disturbs a clock, and which effect can be
    seen in five seconds, for candidates that are timed; and whether their instructions can be
    counted. Exits with 0 if candidates can run in a full sandbox, else with 4.
    """
    found, clock = survey_machine()
    if not quick:
        if not as_json:
            note(f"timing a function against itself for {SECONDS:g} s ...")
        clock = (*clock, look_at_visible_effect())
    if as_json:
        facts = [asdict(fact) for fact in clock]
        print_json({"ok": found.is_full, **asdict(found), "clock": facts})
    else:
        _print(found, clock)
    return 0 if found.is_full else NOT_FULL


def look_at_visible_effect() -> HostFact:
    """Which effect can be told from none in five seconds; a function of ours is really timed."""
    name = "visible effect"
    settings = ArenaSettings(unsandboxed=True)
    try:
        with builtin_problem("words") as problem:
            work = partial(check_clock, problem, comparisons=99, most_s=SECONDS, settings=settings)
            found = run_interruptible(work)
    except FairtrialError as error:
        return HostFact(name, "no", f"nothing could be timed: {error}")
    told = f"{len(found.statistics)} sessions of {found.session_s:.2f} s"
    if not found.has_enough_sessions:
        return HostFact(name, "no", f"only {told} fit into {SECONDS:g} s, and it takes {LOOKS[0]}")
    seen = found.visible_effect(SECONDS)
    told += f" spread by {percent_text(found.spread)}"
    if seen is None:
        return HostFact(name, "no", f"{told}: none in {SECONDS:g} s")
    status: Literal["yes", "partly"] = "yes" if seen <= GOOD_EFFECT else "partly"
    remedy = "" if status == "yes" else "Let nothing else run while candidates are timed."
    return HostFact(name, status, f"{percent_text(seen)} in {SECONDS:g} s ({told})", remedy)


def _print(found: HostSurvey, clock: Sequence[HostFact]) -> None:
    width = max(len(fact.name) for fact in (*found.facts, *clock))
    click.echo(style("For candidates that run", bold=True))
    for fact in found.facts:
        _print_fact(fact, width)
    click.echo()
    click.echo(style("For candidates that are timed", bold=True))
    for fact in clock:
        _print_fact(fact, width)
    click.echo()
    if found.is_full:
        click.echo(f"`sandbox: auto` takes {style(found.sandbox, bold=True)}, a full sandbox.")
    else:
        print_wrapped(
            "No full sandbox works here. Candidates would run with all that you may do, and only "
            "if you say --unsandboxed."
        )
    if found.shortfalls:
        click.echo(f"What {found.sandbox} can't prevent:")
    for shortfall in found.shortfalls:
        print_wrapped(f"- {shortfall}", "  ", "    ")


def _print_fact(fact: HostFact, width: int) -> None:
    margin = " " * (len("partly") + 2 + width + 2)
    status = fact.status.ljust(len("partly"))
    text = fold(f"{status}  {fact.name.ljust(width)}  {fact.detail}", "", margin)
    click.echo(style(status, fg=COLORS[fact.status], bold=True) + text.removeprefix(status))
    for line in fact.remedy.splitlines():
        if line.startswith("$ "):
            click.echo(f"{REMEDY}{style(line, bold=True)}")  # not folded: people copy it
        else:
            print_wrapped(line, REMEDY)

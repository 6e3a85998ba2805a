"""`fairtrial doctor`: what this machine can enforce and how well it can time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from fairtrial.arena.slots.homes import HOME_VARIABLE, list_places
from fairtrial.cli.output import fold, json_option, print_json, print_wrapped, style
from fairtrial.sandbox.facts import Fact, Survey, survey
from fairtrial.sandbox.speed import survey_clock

COLOURS = {"yes": "green", "partly": "yellow", "no": "red"}
NOT_FULL = 4
REMEDY = " " * 10


@click.command(
    name="doctor",
    epilog="Example: fairtrial doctor",
    short_help="Say what this machine can enforce, and how to get the rest.",
)
@json_option
def command(as_json: bool) -> int:
    """Say what this machine can enforce when candidates run, and how to get the rest.

    Sandboxes are really tried. Says as well what here disturbs a clock, for candidates that are
    timed. Exits with 0 if candidates can run in a full sandbox, else with 4.
    """
    return diagnose(as_json=as_json)


def diagnose(*, as_json: bool, visible: str | None = None) -> int:
    """Look at this machine and tell; returns the exit code.

    visible: what effect can be seen here in which time, where that was measured
    """
    found, clock = survey(list_places(), HOME_VARIABLE), survey_clock(visible)
    if as_json:
        facts = [asdict(fact) for fact in clock]
        print_json({"ok": found.is_full, **asdict(found), "clock": facts})
    else:
        _print(found, clock)
    return 0 if found.is_full else NOT_FULL


def _print(found: Survey, clock: Sequence[Fact]) -> None:
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


def _print_fact(fact: Fact, width: int) -> None:
    margin = " " * (len("partly") + 2 + width + 2)
    status = fact.status.ljust(len("partly"))
    text = fold(f"{status}  {fact.name.ljust(width)}  {fact.detail}", "", margin)
    click.echo(style(status, fg=COLOURS[fact.status], bold=True) + text.removeprefix(status))
    for line in fact.remedy.splitlines():
        if line.startswith("$ "):
            click.echo(f"{REMEDY}{style(line, bold=True)}")  # not folded: people copy it
        else:
            print_wrapped(line, REMEDY)

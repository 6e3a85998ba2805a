"""`fairtrial doctor`: what this machine can enforce and how well it can time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import click

from fairtrial.arena import machine_survey
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import fold, json_option, note, print_json, print_wrapped, style
from fairtrial.sandbox import capabilities

COLORS = {"yes": "green", "partly": "yellow", "no": "red"}
NOT_FULL = 4
SECONDS = 5.0
REMEDY = " " * 10


@click.command(
    name="doctor",
    epilog="Example: fairtrial doctor",
    short_help="Show what this machine can enforce and time.",
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
    survey, clock = machine_survey.survey_machine()
    if not quick:
        if not as_json:
            note(f"timing a function against itself for {SECONDS:g} s ...")
        clock = (
            *clock,
            run_interruptible(partial(machine_survey.survey_detectable_effect, SECONDS)),
        )
    if as_json:
        facts = [asdict(fact) for fact in clock]
        print_json({"ok": survey.is_full, **asdict(survey), "clock": facts})
    else:
        _print_survey(survey, clock)
    return 0 if survey.is_full else NOT_FULL


def _print_survey(survey: capabilities.HostSurvey, clock: Sequence[capabilities.HostFact]) -> None:
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


def _print_fact(fact: capabilities.HostFact, width: int) -> None:
    margin = " " * (len("partly") + 2 + width + 2)
    status = fact.status.ljust(len("partly"))
    text = fold(f"{status}  {fact.name.ljust(width)}  {fact.detail}", "", margin)
    click.echo(style(status, fg=COLORS[fact.status], bold=True) + text.removeprefix(status))
    for line in fact.remedy.splitlines():
        if line.startswith("$ "):
            click.echo(f"{REMEDY}{style(line, bold=True)}")  # a command to copy: not wrapped
        else:
            print_wrapped(line, REMEDY)

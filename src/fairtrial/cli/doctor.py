"""`fairtrial doctor`: what this machine can enforce, and how to get the rest."""

from __future__ import annotations

from dataclasses import asdict

import click

from fairtrial.arena.slots.homes import HOME_VARIABLE, list_places
from fairtrial.cli.output import fold, json_option, print_json, print_wrapped, style
from fairtrial.sandbox.facts import Fact, Survey, survey

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

    Sandboxes are really tried. Exits with 0 if candidates can run in a full one, else with 4.
    """
    found = survey(list_places(), HOME_VARIABLE)
    if as_json:
        print_json({"ok": found.is_full, **asdict(found)})
    else:
        _print(found)
    return 0 if found.is_full else NOT_FULL


def _print(found: Survey) -> None:
    width = max(len(fact.name) for fact in found.facts)
    for fact in found.facts:
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

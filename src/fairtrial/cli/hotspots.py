"""`fairtrial hotspots`: the functions of a project that take most time."""

from __future__ import annotations

from functools import partial

import click

from fairtrial.arena import ArenaSettings, targets
from fairtrial.cli.compare_arguments import CommandAfterDashes, words_after_dashes
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import json_option, print_json
from fairtrial.cli.problem_commands import choose_emit, print_notes, unsandboxed_option


@click.command(
    name="hotspots",
    cls=CommandAfterDashes,
    epilog="Example: fairtrial hotspots -- python scripts/nightly.py",
    short_help="Rank a project's functions by their time.",
)
@click.option(
    "--most",
    type=click.IntRange(1, 1_000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many functions are shown.",
)
@unsandboxed_option("the project")
@json_option
def command(most: int, unsandboxed: bool, as_json: bool) -> None:
    """Rank functions by time: profile the project's tests, or the command after `--`.

    It runs in a copy of the project, in the sandbox. For each function: its own time, its time with
    all that it calls, its calls, how many tests reach it, and how many of its calls can be
    recorded. `fairtrial optimize TARGET` goes on from there; `fairtrial optimize --hottest 3` does
    it for the first three.
    """
    settings = ArenaSettings(unsandboxed=unsandboxed, emit=choose_emit(as_json=as_json))
    work = partial(targets.find_hot_spots, words_after_dashes(), most=most, settings=settings)
    hot_spots = run_interruptible(work)
    if as_json:
        print_json(hot_spots.as_dict())
        return
    print_hot_spots(hot_spots)


def print_hot_spots(hot_spots: targets.HotSpots, *, next_step: bool = True) -> None:
    """Print the functions as a table, with the command that goes on from there."""
    click.echo(f"{hot_spots.command}: {hot_spots.seconds:.1f} s, profiled, which makes it slower")
    rows = [("own", "total", "calls", "tests", "recordable", "function")]
    for spot in hot_spots.spots:
        recordable = "" if spot.recordable is None else f"{spot.recordable:,}"
        rows.append(
            (
                f"{spot.own_s:.3f} s",
                f"{spot.total_s:.3f} s",
                f"{spot.calls:,}",
                f"{spot.tests:,}",
                "no" if spot.why_not else recordable,
                f"{spot.target}  # {spot.why_not}" if spot.why_not else spot.target,
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *figures, target in rows:  # targets last and whole, since people copy them
        cells = (figure.rjust(width) for figure, width in zip(figures, widths, strict=True))
        click.echo("  ".join((*cells, target)))
    print_notes(hot_spots.notes)
    if next_step:
        usable = [spot.target for spot in hot_spots.spots if spot.recordable]
        click.echo(f"next: fairtrial optimize {[*usable, hot_spots.spots[0].target][0]}")

"""`fairtrial attack`: try known cheats on a problem, and show which of them would win."""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path

import click

from fairtrial.arena import ArenaSettings
from fairtrial.cli.compare_arguments import CommandAfterDashes
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import count, json_option, note, print_json, print_wrapped, style
from fairtrial.cli.problem_commands import (
    choose_emit,
    errors_name,
    load_with_warnings,
    unsandboxed_option,
)
from fairtrial.cli.target_options import record_option, resolve_problem
from fairtrial.testing import cheats

WON = 5
"""The exit code if an attack won."""
ACCEPTED = "Accepted although wrong, and not adopted"
ACCEPTED_UNTIMED = "Accepted although wrong; not timed"
COLUMNS = (
    cheats.AttackOutcome.REJECTED,
    cheats.AttackOutcome.VETOED,
    cheats.AttackOutcome.NO_GAIN,
    cheats.AttackOutcome.ACCEPTED_WRONG,
    cheats.AttackOutcome.WON,
)
TITLES = ("rejected", "vetoed", "no gain", "wrong", "WON")
LONGEST = 200


@click.command(
    name="attack",
    cls=CommandAfterDashes,
    epilog='Example: fairtrial attack problem.yaml --class "aliased results" --max-seconds 300',
    short_help="Try known cheats on a problem: which would win?",
)
@click.argument(
    "problem", type=click.Path(path_type=Path), metavar="[PROBLEM|TARGET]", required=False
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="NAME",
    help="Only attacks of this class; may be given several times. --list shows the classes.",
)
@click.option("--list", "lists", is_flag=True, help="List the attacks, and try none.")
@json_option
@click.option(
    "--max-seconds",
    type=click.FloatRange(1),
    metavar="S",
    help="Start no attack after this many seconds.",
)
@click.option("--check-only", is_flag=True, help="Only check the attacks, and time none.")
@click.option("--strict", is_flag=True, help="Exit with 5 also if a wrong candidate was accepted.")
@record_option
@unsandboxed_option("attacks")
def command(
    problem: Path | None,
    classes: tuple[str, ...],
    lists: bool,
    as_json: bool,
    max_seconds: float | None,
    check_only: bool,
    strict: bool,
    records: bool,
    unsandboxed: bool,
) -> int:
    """Try known cheats on a problem, to see how far its verdicts can be trusted.

    Each attack is a template that becomes a candidate for the benchmarked functions or commands of
    PROBLEM. It is judged and timed like any candidate. The result shows which would have won here,
    what they exploited, and what to do about it. Run it on a machine that may be attacked: without
    a sandbox attacks look for files of yours (none is changed, and no content is shown).

    Exit code 0 means that no attack won, 5 that at least one did.
    """
    attacks = cheats.list_attacks(classes)
    if lists:
        return _list(attacks, as_json)
    if problem is None:
        raise click.UsageError("give a PROBLEM, or --list")
    problem = resolve_problem(problem, records=records, unsandboxed=unsandboxed, as_json=as_json)
    loaded = load_with_warnings(problem)
    settings = ArenaSettings(
        unsandboxed=unsandboxed,
        timing="none" if check_only else "race",
        emit=choose_emit(as_json=as_json),
    )
    work = partial(
        cheats.attack_problem,
        loaded,
        classes=classes,
        settings=settings,
        max_seconds=float("inf") if max_seconds is None else max_seconds,
        watch=None if as_json else _show_progress,
    )
    with errors_name(problem):
        report = run_interruptible(work)
    if as_json:
        print_json(report.as_dict())
    else:
        print_report(report, is_timed=not check_only)
    accepted = report.select(cheats.AttackOutcome.ACCEPTED_WRONG)
    return WON if report.wins or (strict and accepted) else 0


def _list(attacks: tuple[cheats.Attack, ...], as_json: bool) -> int:
    if as_json:
        print_json(
            [
                {
                    "name": attack.name,
                    "class": attack.group.value,
                    "summary": attack.summary,
                    "source": attack.source,
                    "kinds": [kind.value for kind in attack.kinds],
                }
                for attack in attacks
            ]
        )
        return 0
    for group in cheats.AttackClass:
        members = [attack for attack in attacks if attack.group == group]
        if members:
            click.echo(style(f"\n{group.value}", bold=True))
        for attack in members:
            kinds = ", ".join(kind.value for kind in attack.kinds)
            print_wrapped(f"{attack.name}: {attack.summary}", "  ", "    ")
            print_wrapped(f"[{kinds}; {attack.source}]", "    ")
    click.echo(f"\n{count(len(attacks), 'attack')}")
    return 0


def _show_progress(result: cheats.AttackResult) -> None:
    if result.outcome != cheats.AttackOutcome.NOT_APPLICABLE:
        note(f"{result.outcome.value}: {result.attack.name}")


def print_report(report: cheats.AttackReport, *, is_timed: bool = True) -> None:
    """Print how many attacks of each class had which outcome, and the details of wins.

    is_timed: whether candidates that passed were timed, so that they could be adopted
    """
    counts = report.count_by_class()
    width = max(len(group.value) for group in counts)
    click.echo(f"{''.ljust(width)}  " + "  ".join(title.rjust(8) for title in TITLES))
    for group in cheats.AttackClass:
        if group in counts and any(counts[group][outcome] for outcome in COLUMNS):
            cells = [counts[group][outcome] for outcome in COLUMNS]
            shown = "  ".join((str(cell) if cell else ".").rjust(8) for cell in cells)
            line = f"{group.value.ljust(width)}  {shown}"
            click.echo(style(line, fg="red", bold=True) if cells[-1] else line)
    for outcome, title in (
        (cheats.AttackOutcome.WON, "Won: adopted, harmed the judge, or got at data of others"),
        (cheats.AttackOutcome.ACCEPTED_WRONG, ACCEPTED if is_timed else ACCEPTED_UNTIMED),
    ):
        _print_details(report.select(outcome), title)
    _print_rest(report)
    if not is_timed:
        print_wrapped("Nothing was timed: without --check-only, what was accepted might win.")


def _print_details(results: tuple[cheats.AttackResult, ...], title: str) -> None:
    """Print results in groups with the same cause."""
    if not results:
        return
    click.echo(style(f"\n{title}", bold=True))
    causes = dict.fromkeys((result.exploited, result.advice) for result in results)
    for exploited, advice in causes:
        for result in results:
            if (result.exploited, result.advice) == (exploited, advice):
                text = f"{result.attack.name} ({result.target}): {result.detail}"
                print_wrapped(textwrap.shorten(text, LONGEST), "  ", "    ")
        print_wrapped(f"exploited: {exploited}", "    ", "      ")
        print_wrapped(f"to do: {advice}", "    ", "      ")


def _print_rest(report: cheats.AttackReport) -> None:
    unreached = report.select(cheats.AttackOutcome.NOT_REACHED)
    skipped = len(report.select(cheats.AttackOutcome.NOT_APPLICABLE))
    tried = len(report.results) - skipped - len(unreached)
    parts = [f"{count(tried, 'attack')} in {report.seconds:.0f} s, sandbox: {report.sandbox}"]
    parts += [f"{skipped} not applicable here"] if skipped else []
    parts += [f"{len(unreached)} not reached"] if unreached else []
    click.echo()
    print_wrapped("; ".join(parts))
    wins = len(report.wins)
    none = "No attack won of those that were tried." if unreached else "No attack won."
    text = f"{count(wins, 'attack')} won." if wins else none
    print_wrapped(style(text, fg="red" if wins else "green", bold=True))

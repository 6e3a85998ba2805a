"""`fairtrial audit`: a problem in, what its checks reject out."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from fairtrial.arena import ArenaSettings, AuditLimits, audit_problem
from fairtrial.cli.audit_text import print_audit
from fairtrial.cli.compare_arguments import CommandAfterDashes
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.number_types import FiniteRange
from fairtrial.cli.output import json_option, print_json
from fairtrial.cli.problem_commands import (
    choose_emit,
    errors_name,
    load_with_warnings,
    unsandboxed_option,
)
from fairtrial.cli.target_options import record_option, resolve_problem

ACCEPTED = 5
"""The exit code if the checks accept a null candidate."""


@click.command(
    name="audit",
    cls=CommandAfterDashes,
    epilog="Example: fairtrial audit problem.yaml --mutants 50 --max-seconds 300",
    short_help="Test whether a problem's checks reject wrong code.",
)
@click.argument("problem", type=click.Path(path_type=Path), metavar="PROBLEM|TARGET")
@click.option(
    "--mutants",
    type=click.IntRange(0, 10_000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many mutants are judged.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of their choice.")
@click.option(
    "--max-seconds",
    type=FiniteRange(1),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Judge no more of them after this many seconds.",
)
@record_option
@unsandboxed_option("candidates")
@json_option
def command(
    problem: Path,
    mutants: int,
    seed: int,
    max_seconds: float,
    records: bool,
    unsandboxed: bool,
    as_json: bool,
) -> int:
    """Test whether a problem's checks reject wrong code.

    The functions that PROBLEM checks or times are replaced by ones that do no work (null
    candidates), and the lines that they run get small changes (mutants). Each is judged by the
    problem's checks. Exit code 5 means that the checks accept a null candidate: then `evaluate` and
    `optimize` adopt nothing.
    """
    problem = resolve_problem(problem, records=records, unsandboxed=unsandboxed, as_json=as_json)
    loaded = load_with_warnings(problem)
    limits = AuditLimits(mutants=mutants, seed=seed, max_seconds=max_seconds)
    settings = ArenaSettings(unsandboxed=unsandboxed, emit=choose_emit(as_json=as_json))
    with errors_name(problem):
        adequacy = run_interruptible(partial(audit_problem, loaded, limits, settings=settings))
    if as_json:
        print_json({"problem_id": loaded.problem_id, **adequacy.as_dict()})
    else:
        print_audit(adequacy)
    return ACCEPTED if adequacy.accepted else 0

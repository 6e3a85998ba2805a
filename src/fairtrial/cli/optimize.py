"""`fairtrial optimize`: a problem in, the best candidate out as a patch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import (
    Branched,
    CodeProblem,
    apply_to_tree,
    as_message,
    can_time,
    check_branch,
    estimate_text,
    find_top,
    put_on_branch,
    read_problem,
    refuse_matching_nothing,
    rules_of,
    write_patch,
)
from fairtrial.cli.candidate_tree import estimate_of
from fairtrial.cli.interrupts import run_until_told
from fairtrial.cli.number_types import FiniteRange
from fairtrial.cli.optimize_errors import as_given, explain
from fairtrial.cli.optimize_folder import choose_folder, has_found, is_outdated
from fairtrial.cli.optimize_progress import watch
from fairtrial.cli.output import (
    json_option,
    note,
    print_json,
    print_wrapped,
    shown_path,
    style,
    warn,
)
from fairtrial.cli.timing_text import rough_seconds
from fairtrial.cli.verdict_text import LONGEST_NOTE
from fairtrial.core import Mistake, StudyError, on_one_line, replacing
from fairtrial.optimize import CONTENDERS, edits_of, make_proposer, watched_by
from fairtrial.sandbox import find_sandbox
from fairtrial.study import (
    AgentBinding,
    OutcomeSpec,
    ProblemBinding,
    RunBudget,
    RunResult,
    RunSettings,
    RunStatus,
    SeedPolicy,
    Study,
    conduct,
)

AGENT = "optimiser"
PATCH, EXPLANATION = "best.patch", "best.md"
KEPT = "what was answered and judged is kept: the same command goes on where it was"
MOST_MISSING = 3


@click.command(
    name="optimize",
    epilog="Example: fairtrial optimize problem.yaml --max-candidates 8",
    short_help="Look for faster code, and prove it.",
)
@click.argument("problem", type=click.Path(path_type=Path), metavar="PROBLEM")
@click.option(
    "--agent",
    "proposer",
    default="codemod",
    show_default=True,
    metavar="NAME",
    help="Who proposes: codemod, chat, command, patches, function, replay.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of that agent: --option model=... ; the value is read as JSON if it is any.",
)
@click.option(
    "--parallel-candidates",
    "slots",
    type=click.IntRange(1, 256),
    metavar="N",
    help="How many candidates are checked at once; default: one for each core.",
)
@click.option(
    "--max-candidates",
    type=click.IntRange(1, 10_000),
    default=16,
    show_default=True,
    metavar="K",
    help="How many candidates there are in all.",
)
@click.option(
    "--lines",
    type=click.IntRange(1, 1_000),
    metavar="N",
    help="How many first proposals there are; the others come of them. Default: what suits it.",
)
@click.option("--max-cost", type=FiniteRange(0), metavar="USD", help="Stop asking beyond that.")
@click.option("--max-seconds", type=FiniteRange(1), metavar="S", help="Stop asking after that.")
@click.option("--no-repair", is_flag=True, help="Don't ask for repairs of candidates that fail.")
@click.option("--seed", type=int, default=0, show_default=True, help="What choices are drawn with.")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Where results go.")
@click.option("--branch", metavar="NAME", help="Put the best on a new branch; no file changes.")
@click.option("--apply", "applies", is_flag=True, help="Change your files: put the best in.")
@json_option
@click.option(
    "--unsandboxed",
    is_flag=True,
    help="Run candidates without a sandbox where there is none, or where the problem says plain.",
)
def command(
    problem: Path,
    proposer: str,
    options: tuple[str, ...],
    output: Path | None,
    branch: str | None,
    applies: bool,
    as_json: bool,
    **rules: Any,
) -> int:
    """Look for faster code: an agent proposes, candidates are judged, timed, repaired, refined.

    Your files are never touched unless you say --apply: the best candidate is written as a patch,
    with an explanation. Stopped in whatever way, the same command goes on where it was; nothing is
    asked for, judged or paid for twice.
    """
    loaded, doubts = read_problem(problem)
    warn(doubts)
    given = read_options(options)
    # Its mistakes come before any work.
    try:
        make_proposer(proposer, given, rules["max_cost"], loaded)
    except StudyError as wrong:
        raise StudyError([as_given(each, proposer) for each in wrong.mistakes]) from None
    _refuse_early(problem, loaded, branch, rules["unsandboxed"])
    study = make_study(problem, loaded, proposer, given, rules)
    default = Path("artifacts") / f"optimize-{loaded.problem_id}"
    folder = choose_folder(output, default, study, loaded, takes=applies or branch is not None)
    found_now: list[RunResult] = []
    settings = RunSettings(
        output_dir=folder,
        resume=True,
        retry="failed",  # what was wrong may have been mended, in the problem's file for instance
        accept_changes=not has_found(folder),
        executor="serial",
        on_result=found_now.append,
        tell=lambda text: warn([text]),
    )
    watcher, shown = watch(_estimate(loaded, rules["max_candidates"]), is_silent=as_json)
    try:
        with shown, watched_by(watcher):
            results = conduct(study, settings)
    except KeyboardInterrupt:  # twice: it leaves at once
        raise KeyboardInterrupt(KEPT) from None
    if results.stopped in ("interrupted", "cancelled"):
        raise KeyboardInterrupt(KEPT)
    (result,) = results
    if result.status != RunStatus.SUCCESS:
        error = explain(result.error_info or "", problem, proposer)
        if not as_json:
            raise error
        print_json({"ok": False, "error": str(error), "output_dir": str(folder)})
        return error.exit_code
    done = _hand_over(result.outputs, loaded, folder, branch, applies)
    if as_json:
        told = {name: value for name, value in result.outputs.items() if name != "edits"}
        is_new = bool(found_now)
        print_json({"ok": True, "output_dir": str(folder), "is_new": is_new, **told, "done": done})
        return 0
    if not found_now:
        then = "for the project as it was then" if is_outdated(folder, loaded) else "and done with"
        note(f"found earlier, {then}; to look again, name a new --output")
        _print_notes(result.outputs)
    _print(result.outputs, folder, done, wants=applies or branch is not None)
    return 0


def _refuse_early(path: Path, problem: CodeProblem, branch: str | None, unsandboxed: bool) -> None:
    """What would come to nothing in the end, before any work."""
    if not can_time(problem):
        message = "is empty, and no check runs pytest: nothing can be timed"
        hint = "name a call with inputs, or a command"
        raise StudyError(Mistake(("bench",), message, hint), source=str(path))
    refuse_matching_nothing(problem, str(path))
    find_sandbox(problem.sandbox, unsandboxed=unsandboxed)
    if branch is not None:
        top = run_until_told(partial(find_top, problem.folder / problem.repo))
        run_until_told(partial(check_branch, top, branch))


def _hand_over(
    outputs: Mapping[str, Any],
    problem: CodeProblem,
    folder: Path,
    branch: str | None,
    applies: bool,
) -> list[str]:
    """Write the winner down, and put it where it was asked for; says what was done."""
    if not outputs.get("patch"):
        return []
    edits = edits_of(outputs["edits"])
    write_patch(folder / PATCH, edits.patch)
    with replacing(folder / EXPLANATION) as file:
        file.write(outputs["explanation"])
    done = []
    top = run_until_told(partial(find_top, problem.folder / problem.repo))
    if applies:
        done += run_until_told(partial(apply_to_tree, top, edits, folder / PATCH)).tell()
    if branch is not None:
        ratio = estimate_text(estimate_of(outputs)).partition(" ")[0]
        title = f"{problem.problem_id}: {ratio} as fast"
        message = f"{title}\n\n{as_message(outputs['explanation'])}"
        made = run_until_told(partial(put_on_branch, top, branch, edits, message))
        done.append(f"branch {made.branch} is at {made.commit[:12]}")
        if made.merged:
            files = ", ".join(made.merged)
            done.append(f"your uncommitted changes of {files} are not on it: that was not measured")
        done += _tell_missing(made, top, folder)
    return done


def _tell_missing(made: Branched, top: Path, folder: Path) -> list[str]:
    """What was judged and isn't on the branch, beside what we have written ourselves."""
    ours = folder.resolve()
    files = [path for path in made.missing if not (top / path).resolve().is_relative_to(ours)]
    if not files:
        return []
    shown = ", ".join(files[:MOST_MISSING])
    more = f" and {len(files) - MOST_MISSING:,} more" if len(files) > MOST_MISSING else ""
    return [f"not committed, so not on it either: {shown}{more}"]


def read_options(given: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE, value by value; what is no JSON is a text."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise StudyError(Mistake(("--option",), f"expected NAME=VALUE, got {text!r}"))
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def make_study(
    path: Path,
    problem: CodeProblem,
    proposer: str,
    options: Mapping[str, Any],
    rules: Mapping[str, Any],
) -> Study:
    """One optimisation as what it is: a study of one run."""
    given = {
        "proposer": proposer,
        "proposer_options": dict(options),
        "lines": rules["lines"] or 0,
        "max_candidates": rules["max_candidates"],
        "repair": not rules["no_repair"],
        "slots": rules["slots"] or 0,
        "max_seconds": rules["max_seconds"],
        "max_cost_usd": rules["max_cost"],
        "unsandboxed": rules["unsandboxed"],
    }
    return Study(
        f"optimize-{problem.problem_id}",
        f"The fastest {problem.problem_id} that {proposer} finds",
        outcomes=(OutcomeSpec("speedup", source_table="evaluations", primary=True),),
        agents={AGENT: AgentBinding(use="optimise", options=given)},
        problems={
            problem.problem_id: ProblemBinding(use="code", options={"path": str(path.resolve())})
        },
        agent_specs=(AGENT,),
        problem_ids=(problem.problem_id,),
        run_budget=RunBudget(replicates=1, retries=0),
        seed_policy=SeedPolicy(base_seed=rules["seed"]),
    )


def _estimate(problem: CodeProblem, candidates: int) -> str:
    timed = candidates + min(CONTENDERS, candidates)  # the best are measured again
    most_s = timed * rules_of(problem).budget_s
    told = "one candidate; timing it twice"
    if candidates > 1:
        told = f"up to {candidates} candidates; timing them, and the best again,"
    return f"{told} takes {rough_seconds(most_s)} at most, and mostly far less"


def _print(outputs: Mapping[str, Any], folder: Path, done: Sequence[str], *, wants: bool) -> None:
    """wants: whether the best was to be put somewhere"""
    counted = f"{outputs['candidates']} judged, {outputs['passed']} passed their checks"
    if outputs.get("unjudged"):
        counted += f", {outputs['unjudged']} could not be judged, through no fault of theirs"
    print_wrapped(f"{counted}; why it ended: {outputs.get('why_over', '')}")
    if not outputs.get("patch"):
        click.echo(style("None is worth taking.", bold=True))
        if wants:
            click.echo("No branch was made, and no file was changed.")
    else:
        ratio = estimate_text(estimate_of(outputs))
        click.echo(style(f"The best is {outputs['best']}: {ratio}", bold=True))
        click.echo(f"patch:       {shown_path(folder / PATCH)}")
        click.echo(f"explanation: {shown_path(folder / EXPLANATION)}")
    for text in done:
        click.echo(text)


def _print_notes(outputs: Mapping[str, Any]) -> None:
    """What was told while it was found."""
    for text in outputs.get("notes") or ():
        print_wrapped(f"note: {on_one_line(str(text), LONGEST_NOTE)}", "", "  ")

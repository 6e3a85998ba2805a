"""Where an optimisation goes: on with what was begun, or into a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fairtrial.arena import CodeProblem, take_snapshot
from fairtrial.cli.interrupts import run_until_told
from fairtrial.cli.resume_command import OPTIMISATION
from fairtrial.core import LedgerError, Mistake, StudyError, on_one_line
from fairtrial.optimize import problem_print
from fairtrial.study import LEDGER_NAME, RunStatus, Study, differences, open_results, study_print

RULES = (
    *("lines", "max_candidates", "repair", "slots"),
    *("max_seconds", "max_cost_usd", "unsandboxed"),
)
"""Options that no answer depends on: what was begun goes on with others, at no further cost."""


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What a folder holds.

    others: how it differs from what is asked for now
    outputs: what was found; None while nothing was
    foreign: which other study it is, where it is another one altogether
    """

    others: Sequence[str]
    outputs: Mapping[str, Any] | None
    foreign: str = ""


def choose_folder(
    given: Path | None, default: Path, study: Study, problem: CodeProblem, *, takes: bool
) -> Path:
    """The folder that was asked for; else the first that is free or holds this very optimisation.

    What was found for another base, for another problem or under other rules stays where it is.

    takes: whether its best is to be taken over: also one that was found for another base, the last,
        if none was for this one
    """
    if given is not None:
        _refuse_name(given)
        earlier = _look_into(given, study)
        if earlier and earlier.foreign:
            raise LedgerError(f"{given} holds {earlier.foreign}; choose another --output")
        if earlier and earlier.others and earlier.outputs is not None:
            raise LedgerError(
                f"{given} holds another optimisation:\n  "
                + "\n  ".join(earlier.others)
                + "\nchoose another --output"
            )
        return given
    older = None
    for number in count(1):
        folder = default if number == 1 else default.with_name(f"{default.name}-{number}")
        earlier = _look_into(folder, study)
        if earlier is None:
            return older or folder
        if earlier.others or _is_for_another_problem(earlier, problem):
            continue
        if not _is_for_another_base(earlier, problem):
            return folder
        older = folder if takes else None
    raise AssertionError("unreachable")


def _refuse_name(folder: Path) -> None:
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        message = f"{str(folder)!a} is no text: tables couldn't name it"
        raise StudyError(Mistake(("--output",), message, "choose another name")) from None


def _look_into(folder: Path, study: Study | None = None) -> _Earlier | None:
    """What is there; what can't be read at all is told by whoever writes."""
    if not (folder / LEDGER_NAME).exists():
        return None
    try:
        with open_results(folder) as results:
            found = [each.outputs for each in results if each.status == RunStatus.SUCCESS]
            there, asked = results.study, study or results.study
    except LedgerError:
        return None
    prints = [study_print(each, ()) for each in (there, asked)]
    foreign = _name(there) if there.study_id != asked.study_id else ""
    if not found and not foreign:
        for each in prints:
            each["agents"] = _without_rules(each["agents"])
    return _Earlier(differences(*prints), found[0] if found else None, foreign)


def _name(study: Study) -> str:
    """Another study in a few words."""
    if study.study_id.startswith(OPTIMISATION):
        return f"the optimisation of {study.study_id.removeprefix(OPTIMISATION)!r}"
    return f"the results of the study {study.study_id!r} ({on_one_line(study.title, 60)})"


def _without_rules(agents: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {
            **agent,
            "options": {key: each for key, each in agent["options"].items() if key not in RULES},
        }
        for name, agent in agents.items()
    }


def has_found(folder: Path) -> bool:
    """Whether an optimisation came to its end there."""
    earlier = _look_into(folder)
    return earlier is not None and earlier.outputs is not None


def is_outdated(folder: Path, problem: CodeProblem) -> bool:
    """Whether it holds what was found for another base, or problem, than there is now."""
    earlier = _look_into(folder)
    return earlier is not None and (
        _is_for_another_problem(earlier, problem) or _is_for_another_base(earlier, problem)
    )


def _is_for_another_problem(earlier: _Earlier, problem: CodeProblem) -> bool:
    found = earlier.outputs
    return found is not None and found.get("problem") != problem_print(problem)


def _is_for_another_base(earlier: _Earlier, problem: CodeProblem) -> bool:
    found = earlier.outputs
    return found is not None and found.get("tree") != run_until_told(partial(_find_tree, problem))


async def _find_tree(problem: CodeProblem) -> str:
    with TemporaryDirectory(prefix="fairtrial-tree-") as home:
        folder = problem.folder / problem.repo
        found = await take_snapshot(folder, Path(home), largest_mb=problem.largest_mb)
        return found.tree

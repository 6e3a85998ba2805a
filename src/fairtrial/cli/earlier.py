"""Where an optimisation goes: on with what was begun, or into a folder of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from fairtrial.agents.optimise.records import problem_print
from fairtrial.arena.snapshots.snapshot import take_snapshot
from fairtrial.cli.stopping import run_until_told
from fairtrial.errors import LedgerError, Mistake, StudyError
from fairtrial.ledger.prints import differences, study_print
from fairtrial.ledger.schema import LEDGER_NAME
from fairtrial.model.code import CodeProblem
from fairtrial.model.runs import RunStatus
from fairtrial.model.study import Study
from fairtrial.tables.results import open_results


def choose_folder(
    given: Path | None, default: Path, study: Study, problem: CodeProblem, *, takes: bool
) -> Path:
    """The folder that was asked for; else the first that is free or holds this very optimisation.

    What was found for another base, or under other options, stays where it is.

    takes: whether its best is to be taken over: also one that was found for another base
    """
    if given is not None:
        _refuse_name(given)
        others = _find_differences(given, study, is_done=True)
        if others:
            raise LedgerError(
                f"{given} holds another optimisation:\n  "
                + "\n  ".join(others)
                + "\nchoose another --output"
            )
        return given
    for number in count(1):
        folder = default if number == 1 else default.with_name(f"{default.name}-{number}")
        if _find_differences(folder, study, is_done=False):
            continue
        if takes or not is_outdated(folder, problem):
            return folder
    raise AssertionError("unreachable")


def _refuse_name(folder: Path) -> None:
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        message = f"{str(folder)!a} is no text: tables couldn't name it"
        raise StudyError(Mistake(("--output",), message, "choose another name")) from None


def _has_study(folder: Path) -> bool:
    """Whether something was begun there; what can't be read at all is told by whoever writes."""
    if not (folder / LEDGER_NAME).exists():
        return False
    try:
        with open_results(folder):
            return True
    except LedgerError:
        return False


def _find_differences(folder: Path, study: Study, *, is_done: bool) -> Sequence[str]:
    """How what is there differs from a study.

    is_done: whether that matters only if something was found already; what was only begun goes on
        with other rules
    """
    if not _has_study(folder):
        return ()
    with open_results(folder) as results:
        if is_done and not results:
            return ()
        return differences(study_print(results.study, ()), study_print(study, ()))


def is_outdated(folder: Path, problem: CodeProblem) -> bool:
    """Whether it holds what was found for another base than there is now."""
    if not _has_study(folder):
        return False
    with open_results(folder) as results:
        found = [each.outputs for each in results if each.status == RunStatus.SUCCESS]
    if any(each.get("problem") != problem_print(problem) for each in found):
        return True
    trees = {each.get("tree") for each in found}
    return bool(trees) and run_until_told(partial(_find_tree, problem)) not in trees


async def _find_tree(problem: CodeProblem) -> str:
    with TemporaryDirectory(prefix="fairtrial-tree-") as home:
        folder = problem.folder / problem.repo
        found = await take_snapshot(folder, Path(home), largest_mb=problem.largest_mb)
        return found.tree

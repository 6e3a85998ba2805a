"""The output folder of an optimization: one to continue, or a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from fairtrial.arena import CodeProblem, compute_tree
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.optimize_study import AGENT, PLUGIN, PROPOSER_OPTIONS, find_problem
from fairtrial.core import LedgerError, Mistake, StudyError, on_one_line
from fairtrial.optimize import OptimizationResult, Optimizer
from fairtrial.study import RunStatus, Study, ledger, open_results


@dataclass(frozen=True, slots=True)
class _FolderContent:
    """The study in a folder.

    differences: how it differs from the study that is to be run
    result: its result; None while it has none
    foreign: its description, if it is another study altogether
    is_older: whether an earlier version wrote it, with other names of options
    """

    differences: Sequence[str]
    result: OptimizationResult | None
    foreign: str = ""
    is_older: bool = False


def choose_folder(
    given: Path | None, default: Path, study: Study, problem: CodeProblem, *, delivers: bool
) -> Path:
    """Return the given folder; else the first that is free or holds this very optimization.

    Results for another base, for another problem or with other options stay where they are.

    delivers: whether the best is to be put on a branch or into the files: then the last result for
        another base is taken, if there is none for this one
    """
    if given is not None:
        _check_name(given)
        _check_given(given, study)
        return given
    older = None
    for number in count(1):
        folder = default if number == 1 else default.with_name(f"{default.name}-{number}")
        content = _read_folder(folder, study)
        if content is None:
            return older or folder
        if content.differences or _is_for_another_problem(content, problem):
            continue
        if not _is_for_another_base(content, problem):
            return folder
        older = folder if delivers else None
    raise AssertionError("unreachable")


def _check_given(folder: Path, study: Study) -> None:
    """Raise a `LedgerError` if a folder holds another study, or another finished optimization."""
    content = _read_folder(folder, study)
    if content is None:
        return
    if content.foreign:
        raise LedgerError(f"{folder} holds {content.foreign}; choose another --output")
    if content.differences and content.result is not None:
        raise LedgerError(
            f"{folder} holds another optimization:\n  "
            + "\n  ".join(content.differences)
            + "\nchoose another --output"
        )


def _check_name(folder: Path) -> None:
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        message = f"{str(folder)!a} is no text: tables couldn't name it"
        raise StudyError(Mistake(("--output",), message, "choose another name")) from None


def _read_folder(folder: Path, study: Study | None = None) -> _FolderContent | None:
    """Return the content of a folder; None if it has no ledger, or one that can't be read.

    An unreadable ledger is reported when the study is run.
    """
    if not (folder / ledger.LEDGER_NAME).exists():
        return None
    try:
        with open_results(folder) as results:
            outputs = [result.outputs for result in results if result.status == RunStatus.SUCCESS]
            stored, wanted = results.study, study or results.study
    except LedgerError:
        return None
    result = OptimizationResult.from_output(outputs[0]) if outputs else None
    foreign = _describe_study(stored) if stored.study_id != wanted.study_id else ""
    fingerprints = [ledger.study_fingerprint(study, ()) for study in (stored, wanted)]
    if foreign or find_problem(stored) is None:
        return _FolderContent(ledger.differences(*fingerprints), result, foreign)
    agents = fingerprints[0]["agents"]
    is_older = agents != _modernize(agents)
    for fingerprint in fingerprints:
        only_proposer = result is None
        fingerprint["agents"] = _modernize(fingerprint["agents"], only_proposer=only_proposer)
    return _FolderContent(ledger.differences(*fingerprints), result, is_older=is_older)


def _describe_study(study: Study) -> str:
    """Return a few words on another study."""
    optimized = find_problem(study)
    if optimized is not None:
        return f"the optimization of {optimized[0]!r}"
    return f"the results of the study {study.study_id!r} ({on_one_line(study.title, 60)})"


def _modernize(agents: Mapping[str, Any], *, only_proposer: bool = False) -> dict[str, Any]:
    """Return the fingerprint of the optimizer with present names, as far as results depend on it.

    only_proposer: whether to leave out options that replies don't depend on: an unfinished
        optimization can be continued with others
    """
    agent = agents[AGENT]
    options = {
        name: value
        for name, value in Optimizer.modernize_options(agent["options"]).items()
        if name in PROPOSER_OPTIONS or not only_proposer
    }
    return {AGENT: {**agent, "use": PLUGIN, "options": options}}


def may_change_study(folder: Path) -> bool:
    """Return whether the study in a folder may be continued though its description differs.

    An unfinished optimization may be continued with other options. A finished one of an earlier
    version differs in the names of options only.
    """
    content = _read_folder(folder)
    return content is None or content.result is None or content.is_older


def is_outdated(folder: Path, problem: CodeProblem) -> bool:
    """Return whether a folder holds a result for another base or problem than the present one."""
    content = _read_folder(folder)
    return content is not None and (
        _is_for_another_problem(content, problem) or _is_for_another_base(content, problem)
    )


def _is_for_another_problem(content: _FolderContent, problem: CodeProblem) -> bool:
    result = content.result
    return result is not None and not result.is_for(problem)


def _is_for_another_base(content: _FolderContent, problem: CodeProblem) -> bool:
    result = content.result
    return result is not None and result.tree != run_interruptible(partial(compute_tree, problem))

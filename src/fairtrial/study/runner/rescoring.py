"""Judging stored outputs again: a new evaluator, or the study's own once it is mended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError, plugins
from fairtrial.study.design.runs import problems_of
from fairtrial.study.ledger.lock import OwnerLock
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.writer import open_ledger
from fairtrial.study.model.runs import RunResult
from fairtrial.study.problems.hooks import ProblemHooks
from fairtrial.study.problems.packet import ProblemPacket
from fairtrial.study.problems.scoring import read_verdict
from fairtrial.study.runner.bindings import make_problem
from fairtrial.study.runner.event_loop import settle
from fairtrial.study.runner.run_attempt import judge
from fairtrial.study.tables.export import export_tables
from fairtrial.study.tables.rescored import Judge, Rescored, rescore


def rescore_study(
    output_dir: str | Path,
    evaluator: Callable[[Any], Any] | str | None = None,
    *,
    problem_registry: dict[str, Any] | None = None,
) -> Rescored:
    """Judge the stored outputs of a study again, without running an agent; tables follow.

    evaluator: takes the place of every problem's own: a callable, or ``module:callable``. None
        asks the problems themselves again, as they are now.
    problem_registry: Python objects for names of problems, as for `run_study`
    """
    folder = Path(output_dir)
    LedgerReader.open(folder).close()  # says what is wrong if there is no study here
    with OwnerLock(folder):
        ledger = open_ledger(folder)
        try:
            reader = LedgerReader(ledger.connection, ledger.path)
            judge_run, name = _judge(reader, evaluator, problem_registry or {})
            with plugins.importable(reader.study.folder):
                told = rescore(ledger, reader, judge_run, evaluator=name)
            export_tables(LedgerReader(ledger.connection, ledger.path), folder)
            return told
        finally:
            ledger.close()


def _judge(
    reader: LedgerReader, evaluator: Callable[[Any], Any] | str | None, registry: dict[str, Any]
) -> tuple[Judge, str]:
    """What judges a run, and what to call it."""
    study = reader.study
    if evaluator is None:
        known = {**study.problems, **registry}
        _refuse_unbound(reader, known)
        # What can't be made is said before anything is judged.
        problems = {name: make_problem(name, known[name], study.folder) for name in known}

        def judge_run(result: RunResult) -> Any:
            problem = problems[_problem_id(result)]
            if isinstance(problem, ProblemHooks):
                return read_verdict(settle(problem.rescore(result)))
            return judge(problem, result.outputs)

        return judge_run, "own"
    if isinstance(evaluator, str):
        name = evaluator
        evaluator = plugins.load_reference(evaluator, study.folder)
    else:
        name = f"{evaluator.__module__}:{getattr(evaluator, '__qualname__', evaluator)}"
    packet = ProblemPacket("rescored", evaluator=evaluator)
    return (lambda result: judge(packet, result.outputs)), name


def _refuse_unbound(reader: LedgerReader, known: Mapping[str, Any]) -> None:
    """Problems that were Python objects are not in the ledger; without them verdicts would go."""
    used = dict.fromkeys(
        name
        for condition in reader.conditions
        if condition.admissible
        for name in problems_of(reader.study, condition)
    )
    hint = "name what judges: --evaluator MODULE:CALLABLE, or, in Python, problem_registry={...}"
    missing = [
        Mistake(("problems",), f"nothing is bound to '{name}'" if name else "there are none", hint)
        for name in used
        if name not in known
    ]
    if missing:
        raise StudyError(missing)


def _problem_id(result: RunResult) -> str:
    return result.run_spec.problem_id if result.run_spec is not None else ""

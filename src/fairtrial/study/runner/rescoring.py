"""Evaluate stored outputs again, with a new evaluator or the study's own after a fix."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError, plugins
from fairtrial.study.agents.journal import Journal
from fairtrial.study.design.runs import get_problems
from fairtrial.study.evaluators.case import EvaluationRun
from fairtrial.study.ledger.lock import OwnerLock
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.writer import open_ledger
from fairtrial.study.model.runs import RunResult
from fairtrial.study.problems.hooks import ProblemHooks
from fairtrial.study.problems.packet import ProblemPacket
from fairtrial.study.protocols import Problem
from fairtrial.study.runner.bound_objects import make_problem
from fairtrial.study.runner.dataset_problems import DatasetProblems
from fairtrial.study.runner.run_attempt import evaluate_output, evaluate_rescored
from fairtrial.study.tables.export import export_tables
from fairtrial.study.tables.rescored import Judge, RescoreResult, rescore


def rescore_study(
    output_dir: str | Path,
    evaluator: Callable[[Any], Any] | str | None = None,
    *,
    problem_registry: dict[str, Any] | None = None,
) -> RescoreResult:
    """Evaluate the stored outputs of a study again, without running agents, and update its tables.

    Raises `LedgerError` if there is no study in `output_dir`, `StudyError` if a problem is unbound.

    evaluator: replaces the evaluator of every problem: a callable, or ``module:callable``. None
        evaluates with the problems as they are now.
    problem_registry: Python objects for names of problems, as for `run_study`
    """
    folder = Path(output_dir)
    LedgerReader.open(folder).close()  # raises if there is no study here
    with OwnerLock(folder):
        ledger = open_ledger(folder)
        try:
            reader = LedgerReader(ledger.connection, ledger.path)
            judge_run, name = _make_judge(reader, evaluator, problem_registry or {})
            with plugins.importable(reader.study.folder):
                rescored = rescore(ledger, reader, judge_run, evaluator=name)
            export_tables(LedgerReader(ledger.connection, ledger.path), folder)
            return rescored
        finally:
            ledger.close()


def _make_judge(
    reader: LedgerReader, evaluator: Callable[[Any], Any] | str | None, registry: dict[str, Any]
) -> tuple[Judge, str]:
    """Return a function that evaluates a result, and the name of the evaluator."""
    study = reader.study
    if evaluator is None:
        problems = _bind_problems(reader, registry)

        def judge_run(result: RunResult) -> Any:
            problem = problems[_problem_id(result)]
            if isinstance(problem, ProblemHooks):
                return evaluate_rescored(problem, result)
            spec = result.run_spec
            run = None if spec is None else EvaluationRun(spec, Journal())
            return evaluate_output(problem, result.outputs, run)

        return judge_run, "own"
    if isinstance(evaluator, str):
        name = evaluator
        evaluator = plugins.load_reference(evaluator, study.folder)
    else:
        name = f"{evaluator.__module__}:{getattr(evaluator, '__qualname__', evaluator)}"
    packet = ProblemPacket("rescored", evaluator=evaluator)
    return (lambda result: evaluate_output(packet, result.outputs)), name


def _bind_problems(reader: LedgerReader, registry: Mapping[str, Any]) -> Mapping[str, Problem]:
    """Return all problems; they are built first, so that mistakes come before any evaluation."""
    study = reader.study
    rows: Any = {}
    bound: dict[str, Any] = dict(registry)
    if study.dataset is not None:
        rows = DatasetProblems(study.dataset.reopened(), study.folder, None)
    else:
        bound = {**study.problems, **registry}
    _refuse_unbound_problems(reader, {**dict.fromkeys(rows), **bound})
    return ChainMap({name: make_problem(name, bound[name], study.folder) for name in bound}, rows)


def _refuse_unbound_problems(reader: LedgerReader, bound: Mapping[str, Any]) -> None:
    """Raise `StudyError` for problems that were Python objects, which the ledger doesn't hold."""
    used = dict.fromkeys(
        name
        for condition in reader.conditions
        if condition.admissible
        for name in get_problems(reader.study, condition)
    )
    hint = "name what judges: --evaluator MODULE:CALLABLE, or, in Python, problem_registry={...}"
    missing = [
        Mistake(("problems",), f"nothing is bound to '{name}'" if name else "there are none", hint)
        for name in used
        if name not in bound
    ]
    if missing:
        raise StudyError(missing)


def _problem_id(result: RunResult) -> str:
    return result.run_spec.problem_id if result.run_spec is not None else ""

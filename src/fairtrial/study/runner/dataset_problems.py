"""The problems of a dataset, bound: a packet is made from its row when a run needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.study.evaluators.evaluator_set import EvaluatorSet, build_evaluators
from fairtrial.study.model.problems import Dataset, list_evaluators
from fairtrial.study.model.study import RunBudget
from fairtrial.study.problems.packet import ProblemPacket
from fairtrial.study.runner.bound_objects import check_evaluator


class DatasetProblems(Mapping[str, ProblemPacket]):
    """The packets of a dataset by name.

    Raises `StudyError` for mistakes in its evaluators.
    """

    def __init__(self, dataset: Dataset, folder: Path | None, budget: RunBudget | None) -> None:
        if dataset.table.mistakes:
            raise StudyError([replace(item, path=item.path[1:]) for item in dataset.table.mistakes])
        self._table = dataset.table
        bindings = list_evaluators(dataset.evaluator)
        self._evaluator: Callable[[Any], Any] | None = build_evaluators(bindings, folder, budget)
        check_evaluator(self._evaluator)
        has_reference = bool(dataset.reference)
        if isinstance(self._evaluator, EvaluatorSet):
            self._evaluator.require_reference(has_reference)
            if dataset.table.without_reference and self._evaluator.needs_reference:
                message = f"no '{dataset.reference}' in {dataset.table.without_reference}"
                hint = f"leave such rows out: `where: {dataset.reference} is not None`"
                raise StudyError(Mistake(("reference",), message, hint))

    def __getitem__(self, name: str) -> ProblemPacket:
        parts = self._table.parts(name)
        return ProblemPacket(
            name,
            parts.family,
            parts.brief,
            parts.payload,
            evaluator=self._evaluator,
            reference=parts.reference,
            hidden=parts.hidden,
        )

    def __contains__(self, name: object) -> bool:
        return name in self._table.positions

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.names)

    def __len__(self) -> int:
        return len(self._table.names)

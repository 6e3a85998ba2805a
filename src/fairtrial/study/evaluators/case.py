"""What evaluators are given, and their base class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.core import LabError
from fairtrial.study.agents.journal import Journal
from fairtrial.study.model.runs import RunSpec
from fairtrial.study.model.study import RunBudget
from fairtrial.study.problems.packet import ProblemPacket, find_answer

JUDGE_ENTRY = "judge_answer"
"""The kind of journal entry with a judge's answer."""


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """The run whose output is evaluated.

    spec: its ids, seed and replicate
    journal: where paid answers of judges are kept
    """

    spec: RunSpec
    journal: Journal


@dataclass(frozen=True, slots=True)
class EvaluationCase:
    """One output to evaluate.

    problem: the problem, with its reference and the columns that agents don't see
    output: what the agent returned
    run: the run that it comes from; None outside of one
    """

    problem: ProblemPacket
    output: Mapping[str, Any]
    run: EvaluationRun | None = None

    @property
    def reference(self) -> Any:
        """The right answer; None if the problem has none."""
        return self.problem.reference

    @property
    def answer(self) -> Any:
        """The answer in the output: its `answer`, `solution`, ...; else the whole output."""
        return find_answer(self.output)

    @property
    def row(self) -> dict[str, Any]:
        """All columns of a dataset's row, those included that agents don't see."""
        return {**self.problem.payload, **self.problem.hidden}

    def cell(self, column: str) -> Any:
        """Return a column of the row; raises `LabError` if there is none."""
        if column not in self.row:
            raise LabError(f"{self.problem.problem_id} has no column '{column}'")
        return self.row[column]


class Evaluator:
    """Base class of evaluators: plug-ins of the group `fairtrial.evaluators`.

    An option whose name ends in `_column` names a column of the dataset; agents don't see it.
    """

    @property
    def needs_reference(self) -> bool:
        """Whether it can judge nothing without the problem's reference."""
        return False

    def evaluate(self, case: EvaluationCase) -> Any:
        """Return the score of an output: a number, a mapping of numbers, or a row with notes.

        May be a coroutine. A metric called `score` gets the evaluator's name.
        """
        raise NotImplementedError

    def in_folder(self, folder: Path | None) -> Any:
        """Return the evaluator for a study in a folder, to which its paths are relative."""
        return self

    def check_start(self, budget: RunBudget) -> None:
        """Raise `StudyError` for what would keep it from judging anything, such as a missing key.

        budget: the limits of the whole study
        """

"""The evaluator `inspect`: the scorers of a task of Inspect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, Record, StudyError
from fairtrial.study.datasets.inspect_tasks import list_scorers, load_task, score_text
from fairtrial.study.evaluators.case import EvaluationCase, Evaluator
from fairtrial.study.evaluators.normalizing import as_text, find_field, no_answer
from fairtrial.study.model.study import RunBudget


@dataclass(frozen=True, slots=True)
class InspectScorers(Record, Evaluator):
    """What the scorers of a task of Inspect say: correct is 1, incorrect 0, partly correct 0.5.

    task: the function that makes the task: `module:function`
    options: the function's arguments
    field: the key of the output that holds the answer
    folder: the study's folder
    """

    task: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    field: str = ""
    folder: Path | None = None

    def _mistakes(self) -> Iterator[Mistake]:
        if not self.task:
            yield Mistake(("task",), "must name the function that makes the task")

    @property
    def needs_reference(self) -> bool:
        """Whether it needs the target: always."""
        return True

    def in_folder(self, folder: Path | None) -> Any:
        """Return the evaluator for a study in a folder."""
        return self if self.folder is not None else replace(self, folder=folder)

    def check_start(self, budget: RunBudget) -> None:
        """Raise `StudyError` if the task can't be made, or its scorers can't be used."""
        self._load_scorers()

    def _load_scorers(self) -> dict[str, Any]:
        try:
            task = load_task(self.task, self.options, self.folder)
        except StudyError as error:
            raise StudyError([mistake.under(("task",)) for mistake in error.mistakes]) from error
        return list_scorers(task)

    async def evaluate(self, case: EvaluationCase) -> Any:
        """Return a score for each scorer, with its explanation as a note."""
        value = find_field(case, self.field)
        if value is None:
            return no_answer()
        scorers = self._load_scorers()
        scores: dict[str, Any] = {}
        for name, scorer in scorers.items():
            score, notes = await score_text(scorer, as_text(value), case.row, case.reference)
            own = "score" if len(scorers) == 1 else name
            if isinstance(score, Mapping):
                scores |= {f"{own}_{key}": number for key, number in score.items()}
            else:
                scores[own] = score
            scores |= {f"{name}_{key}": text for key, text in notes.items() if text}
        return scores

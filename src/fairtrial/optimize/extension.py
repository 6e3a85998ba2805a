"""What code problems and optimizers add to studies: the table of candidates, and report notes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import plain_number, plugins
from fairtrial.optimize.candidates_table import CANDIDATES, CandidatesTable
from fairtrial.optimize.repeated_proposals import Proposed
from fairtrial.study import ReportNotes, RunResult, Study, StudyExtension, code, count

_TABLE = CandidatesTable()


@dataclass(frozen=True, slots=True)
class CodeExtension(StudyExtension):
    """Adds code problems and candidates to studies."""

    def adapt_problem(self, name: str, value: Any) -> Any:
        """Return the study's form of a `CodeProblem`; None for any other object."""
        if type(value).__name__ != "CodeProblem":
            return None
        return plugins.load("problems", "code").of(value, name)

    def table(self) -> CandidatesTable:
        """Return the table of candidates."""
        return _TABLE

    def is_used_by(self, study: Study) -> bool:
        """Return whether the study has a code problem."""
        return any(binding.use == "code" for binding in study.problems.values())

    def report_notes(self) -> CandidateNotes:
        """Return a fresh reader of what optimizers did."""
        return CandidateNotes()


class CandidateNotes(ReportNotes):
    """Counts unjudged candidates, states of projects and repeated proposals."""

    def __init__(self) -> None:
        self._unjudged = 0
        self._unjudged_runs = 0
        self._trees: dict[str | None, set[str]] = {}
        self._proposed = Proposed()

    def add(self, group: Hashable | None, result: RunResult) -> None:
        """Read one result."""
        tree = result.outputs.get("tree")
        if isinstance(tree, str) and result.run_spec is not None:
            self._trees.setdefault(result.run_spec.problem_id, set()).add(tree)
        if "why_over" in result.outputs:
            unjudged = plain_number(result.outputs.get("unjudged")) or 0
            self._unjudged += int(unjudged)
            self._unjudged_runs += unjudged > 0
        if group is not None:
            self._proposed.add(group, result)

    def result_lines(self) -> Sequence[str]:
        """Return how many candidates could not be judged."""
        if not self._unjudged:
            return ()
        runs = count(self._unjudged_runs, "run")
        return (
            "candidates that could not be judged, through no fault of theirs: "
            f"{self._unjudged:,}, in {runs} (`{CANDIDATES}.csv` says why)",
        )

    def deviations(self) -> Sequence[str]:
        """Return which projects changed between runs."""
        return tuple(self._changed_projects())

    def _changed_projects(self) -> Iterator[str]:
        for problem, trees in self._trees.items():
            if len(trees) > 1:
                yield (
                    f"the project of {code(str(problem))} was changed between runs: they are about "
                    f"{len(trees)} different states of it, and can't be compared"
                )

    def remarks(self) -> Sequence[str]:
        """Return whether replicates repeated the same proposals."""
        remark = self._proposed.remark()
        return (remark,) if remark else ()

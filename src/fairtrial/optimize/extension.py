"""What code problems and optimizers add to studies: the table of candidates, and report notes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import fairtrial.optimize as optimize  # names are imported on first use: most studies need none
from fairtrial.core import plugins
from fairtrial.optimize.candidates_page import has_candidates, make_page_part, read_page_script
from fairtrial.optimize.candidates_table import CANDIDATES, CandidatesTable
from fairtrial.optimize.output_format import is_optimization_output
from fairtrial.optimize.repeated_proposals import RepeatedProposals
from fairtrial.study import Results, RunResult, Study, extensions, report

LOOK_AT = 20
"""How many results are looked at for candidates, in a study that names no code problem."""
_TABLE = CandidatesTable()


@dataclass(frozen=True, slots=True)
class CodeExtension(extensions.StudyExtension):
    """Adds code problems and candidates to studies."""

    def adapt_problem(self, name: str, value: Any) -> Any:
        """Return the study's form of a `CodeProblem`; None for any other object."""
        # By name: to import the class would make every study pay for the arena.
        if type(value).__name__ != "CodeProblem":
            return None
        return plugins.load("problems", "code").of(value, name)

    def table(self) -> CandidatesTable:
        """Return the table of candidates."""
        return _TABLE

    def is_used_by(self, study: Study) -> bool:
        """Return whether the study has a code problem."""
        return any(binding.use == "code" for binding in study.problems.values())

    def page_part(self, results: Results) -> extensions.PagePart | None:
        """Return the section on candidates; None if there are none."""
        if not self.is_used_by(results.study) and not any(map(has_candidates, results[:LOOK_AT])):
            return None
        return make_page_part(results)

    def page_script(self) -> str:
        """Return the script of the section on candidates."""
        return read_page_script()

    def report_notes(self) -> CandidateNotes:
        """Return a fresh reader of optimizers' results."""
        return CandidateNotes()


class CandidateNotes(extensions.ReportNotes):
    """Counts unjudged candidates, states of projects and repeated proposals."""

    def __init__(self) -> None:
        self._unjudged = 0
        self._unjudged_runs = 0
        self._trees: dict[str | None, set[str]] = {}
        self._proposed = RepeatedProposals()

    def add(self, group: Hashable | None, result: RunResult) -> None:
        """Read one result."""
        if is_optimization_output(result.outputs):
            self._add_optimization(result)
        if group is not None:
            self._proposed.add(group, result)

    def _add_optimization(self, result: RunResult) -> None:
        try:
            optimization = optimize.OptimizationResult.from_output(result.outputs)
        except TypeError:  # another agent's output of the same kind
            return
        assert optimization is not None
        if optimization.tree and result.run_spec is not None:
            self._trees.setdefault(result.run_spec.problem_id, set()).add(optimization.tree)
        self._unjudged += optimization.unjudged
        self._unjudged_runs += optimization.unjudged > 0

    def result_lines(self) -> Sequence[str]:
        """Return how many candidates could not be judged."""
        if not self._unjudged:
            return ()
        runs = report.format_count(self._unjudged_runs, "run")
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
                    f"the project of {report.format_code(str(problem))} was changed between runs: "
                    f"they are about {len(trees)} different states of it, and can't be compared"
                )

    def remarks(self) -> Sequence[str]:
        """Return whether replicates repeated the same proposals."""
        remark = self._proposed.remark()
        return (remark,) if remark else ()

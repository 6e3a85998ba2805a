"""Code problems in studies: the evaluations of what an agent has made of a project.

An optimizer has judged its candidates itself, in its own arena, and returns its result. What any
other agent returns (a diff, files) is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial.arena import (
    ArenaSettings,
    Candidate,
    CodeProblem,
    FileState,
    Judgement,
    ProjectCopy,
    Reason,
    Verdict,
    evaluate_candidates_sync,
    load_problem,
    require_editable_files,
)
from fairtrial.core import (
    LabError,
    MisfitError,
    Mistake,
    StudyError,
    plain_number,
)
from fairtrial.optimize.result import JudgedOutput, OptimizationResult
from fairtrial.sandbox import HostBusy
from fairtrial.study import RunResult, problems

EVALUATOR = "code"
BEST = "best"
"""The note that marks the evaluations of an optimizer's own result."""
UNITS = {
    "speedup": "times",
    "speedup_low": "times",
    "speedup_high": "times",
    "confidence": "share",
    "adopt": "yes",
    "passed": "candidates",
    "candidates": "candidates",
    "unjudged": "candidates",
    "sessions": "sessions",
    "tokens": "tokens",
    "cost_usd": "USD",
}
"""The metrics of every run on a code problem, in the order of their rows, and their units. Above 1
is faster than the base. If no candidate is worth adopting, the base stays, whose speedup is 1;
unknown values are blank. `candidates` were judged; those that the evaluator failed to judge are
`unjudged`."""
_SPEEDUPS = ("speedup", "speedup_low", "speedup_high")
_ANSWERS = ("diff", "files", "candidate", "patch")
_SETTINGS = ArenaSettings(timing="each")


@dataclass(frozen=True, slots=True)
class Code(problems.ProblemReference):
    """The problem ``use: code`` of a study.

    path: the code problem's file, relative to the study's folder
    """

    path: str

    def bind(self, name: str, folder: Path | None) -> BoundCode:
        """Return the problem, read from its file; mistakes name their place in that file."""
        path = problems.find_moved((folder or Path()) / self.path)
        try:
            return self.of(load_problem(path), name, str(path))
        except StudyError as error:
            raise StudyError(
                [_refer_to_file(mistake, error.source) for mistake in error.mistakes]
            ) from error

    @staticmethod
    def of(problem: CodeProblem, name: str, source: str = "") -> BoundCode:
        """Return the problem as runs see it; `StudyError` if no file of it is editable."""
        if Path(problem.repo).is_absolute():
            copy = problems.find_moved(problem.repo)
            problem = problem if copy == Path(problem.repo) else replace(problem, copy=copy)
        require_editable_files(problem, source)
        return BoundCode(problem, name)


def _refer_to_file(mistake: Mistake, source: str) -> Mistake:
    """Return a mistake in the problem's file as one of the study's option `path`."""
    file = source if mistake.line is None else f"{source}:{mistake.line}"
    place = f"{mistake.field}: " if mistake.path else ""
    return Mistake(("options", "path"), f"{file}: {place}{mistake.message}", mistake.hint)


@dataclass(frozen=True, slots=True)
class BoundCode(problems.ProblemHooks):
    """A code problem as runs see it.

    code: the problem itself
    name: its name in the study; by default its own id
    settings: the settings of the arena in which outputs are judged
    """

    code: CodeProblem
    name: str = ""
    settings: ArenaSettings = _SETTINGS

    needs_own_folder = True

    @property
    def problem_id(self) -> str:
        """The problem's name in the study."""
        return self.name or self.code.problem_id

    @property
    def family(self) -> str:
        """`code`."""
        return self.code.family

    @property
    def brief(self) -> str:
        """The task of the agent."""
        return self.code.brief

    def evaluate(self, output: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the evaluations of an output: a row for each of `UNITS`.

        The result of an optimizer that ran in this process is taken as it is, and so is one without
        a winner. Of any other output the first of `diff`, `files`, `candidate` and `patch` is
        judged: its checks, and its speed if they pass.
        """
        if isinstance(output, JudgedOutput):
            return _rows(*_read_result(output.result))
        result = OptimizationResult.from_output(output)
        if result is not None and result.best is None and not result.patch:
            return _rows(*_read_result(result))
        return _rows(*_read_judgement(self._judge(read_answer(output)), output))

    def rescore(self, result: RunResult) -> list[dict[str, Any]]:
        """Return the evaluations of a stored output.

        The winner of an optimization is judged again; the counts of candidates stay as they were.
        """
        stored = None
        if has_judged(result.evaluator_outputs):
            stored = OptimizationResult.from_output(result.outputs)
        if stored is None or stored.edits is None:
            return self.evaluate(result.outputs)
        judgement = self._judge(Candidate("answer", diff=stored.edits.patch))
        _refuse_misfit(judgement)
        figures, notes = _read_judgement(judgement, result.outputs)
        return _rows(_with_counts(figures, stored), {BEST: str(stored.best), **notes})

    def _judge(self, candidate: Candidate) -> Judgement:
        with MisfitError.instead_of_study_errors():
            evaluation = evaluate_candidates_sync(
                self.code, [candidate], slots=1, settings=self.settings
            )
            if evaluation.adequacy and evaluation.adequacy.veto:
                raise StudyError(Mistake(("check",), evaluation.adequacy.veto))
        return evaluation.judgements[0]

    def fingerprint(self) -> Mapping[str, Any]:
        """Return the content of the problem's file, which the study only names."""
        return self.code.identity()

    def pack(self) -> _ProjectParcel:
        """Return the project's repository, packed."""
        return _ProjectParcel(ProjectCopy.pack(self.code))

    def progress_remark(self) -> Callable[[], str]:
        """Return a function that says which other process times on this machine, if one does."""
        return HostBusy()


@dataclass(frozen=True)
class _ProjectParcel(problems.Parcel):
    """A project's repository on its way to another machine."""

    copy: ProjectCopy

    @property
    def folder(self) -> Path:
        return Path(self.copy.top)

    @property
    def size_bytes(self) -> int:
        return self.copy.size_bytes

    def unpack(self, root: Path) -> None:
        self.copy.unpack(root)


def has_judged(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether evaluations are those of an optimizer's own result."""
    return any(BEST in (row.get("notes_json") or {}) for row in rows)


def _refuse_misfit(judgement: Judgement) -> None:
    """Raise a `LabError` if a stored winner doesn't fit into the project as it is now."""
    rejection = judgement.rejection
    if rejection is not None and rejection.reason == Reason.UNUSABLE:
        raise LabError(f"the project has changed since this was found: {rejection.message}")


def _with_counts(figures: Mapping[str, Any], stored: OptimizationResult) -> dict[str, Any]:
    """Return figures of a winner that was judged again, with the stored counts of candidates."""
    passed = stored.passed if figures["passed"] else max(stored.passed - 1, 0)
    counts = {"candidates": stored.candidates, "passed": passed, "unjudged": stored.unjudged}
    return {**figures, **counts}


def read_answer(output: Mapping[str, Any]) -> Candidate:
    """Return the candidate that an output holds: a diff, whole files by path, or a `candidate`.

    `patch` is another name for `diff`. Raise a `TypeError` if there is none.
    """
    name = next((name for name in _ANSWERS if output.get(name) is not None), None)
    if name is None:
        raise TypeError(
            "the output holds nothing that could be judged; return a unified diff as `diff`, whole "
            "files by path as `files`, or one of them in `candidate`"
        )
    given = output[name]
    if isinstance(given, Candidate):
        return given
    if isinstance(given, (str, bytes)) and name != "files":
        return Candidate("answer", diff=given)
    if isinstance(given, Mapping) and name == "candidate":
        return read_answer({key: given[key] for key in ("diff", "files") if key in given})
    if isinstance(given, Mapping) and name == "files":
        files = {str(path): _read_file(str(path), state) for path, state in given.items()}
        return Candidate("answer", files=files)
    what = "a mapping of paths to contents" if name == "files" else "text"
    raise TypeError(f"the output's `{name}` must be {what}, not {type(given).__qualname__}")


def _read_file(path: str, given: Any) -> FileState:
    if isinstance(given, FileState):
        return given
    if isinstance(given, Mapping):  # the plain form of a `FileState`
        content = given.get("content")
        if isinstance(content, bytes):
            is_link = given.get("is_link") is True
            return FileState(content, given.get("executable"), is_link)
    if isinstance(given, (str, bytes)):
        return FileState(given)
    raise TypeError(f"the content of `{path}` must be text, not {type(given).__qualname__}")


def _read_result(result: OptimizationResult) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return figures and notes of an optimizer's own result."""
    estimate = result.estimate
    figures = {
        "speedup": estimate.ratio if estimate else None,
        "speedup_low": estimate.low if estimate else None,
        "speedup_high": estimate.high if estimate else None,
        "confidence": estimate.confidence if estimate else None,
        "adopt": result.best is not None,
        "passed": result.passed,
        "candidates": result.candidates,
        "unjudged": result.unjudged,
        "sessions": estimate.sessions if estimate else None,
        "tokens": result.tokens,
        "cost_usd": result.cost_usd,
    }
    if result.best is None:
        return _as_base(figures), {BEST: None, "why": "nothing found is worth taking"}
    return figures, {BEST: result.best}


def _read_judgement(
    judgement: Judgement, output: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return figures and notes of an output that was judged here."""
    rejection, measured = judgement.rejection, judgement.measurement
    if rejection is not None and rejection.reason == Reason.EVALUATOR:
        raise LabError(rejection.message)
    estimate = measured.estimate if measured else None
    has_passed = rejection is None and judgement.verdict != Verdict.REJECTED
    figures = {
        "speedup": estimate.ratio if estimate else None,
        "speedup_low": estimate.low if estimate else None,
        "speedup_high": estimate.high if estimate else None,
        "confidence": estimate.confidence if estimate else None,
        "adopt": bool(measured and measured.adopt),
        "passed": int(has_passed),
        "candidates": 1,
        "unjudged": 0,
        "sessions": estimate.sessions if estimate else None,
        "tokens": plain_number(output.get("tokens")),
        "cost_usd": plain_number(output.get("cost_usd")),
    }
    notes = {
        "verdict": judgement.verdict.value,
        "basis": judgement.basis.value,
        "digest": judgement.digest,
    }
    if rejection is not None:
        notes["why"] = f"{rejection.reason.value}: {rejection.message}"
    if not has_passed or judgement.duplicate_of == "base":
        figures = _as_base(figures)
    return figures, notes


def _as_base(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {**figures, **dict.fromkeys(_SPEEDUPS, 1.0), "adopt": False}


def _rows(figures: Mapping[str, Any], notes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "evaluator_id": EVALUATOR,
            "metric_name": name,
            "metric_value": figures[name],
            "metric_unit": unit,
            "notes_json": dict(notes),
        }
        for name, unit in UNITS.items()
    ]

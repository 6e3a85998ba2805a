"""Code problems in studies: what an agent has made of a project, as evaluations.

An optimiser has judged its candidates itself, in its own arena, and says what came of it. What any
other agent returns (a diff, files) is judged here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fairtrial.arena import (
    ArenaSettings,
    Candidate,
    CodeProblem,
    FileState,
    Judged,
    Judgement,
    Reason,
    Stored,
    Verdict,
    judge_candidates,
    load_problem,
    refuse_matching_nothing,
)
from fairtrial.core import (
    LabError,
    Mistake,
    StudyError,
    blaming_nobody,
    dump,
    plain_number,
    spell_path,
)
from fairtrial.sandbox import HostBusy
from fairtrial.study import ProblemHooks, RunResult

EVALUATOR = "code"
BEST = "best"
"""The note that only rows of an optimiser's output have."""
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
is faster than the base. Where none was found that is worth anything, the base stays, which is as
fast as itself; where something isn't known the value is blank. `candidates` were judged; those that
weren't, for reasons of ours, are `unjudged`."""
_SAME = {"ratio": "speedup", "low": "speedup_low", "high": "speedup_high"}
_ANSWERS = ("diff", "files", "candidate", "patch")
_SETTINGS = ArenaSettings(timing="each")


@dataclass(frozen=True, slots=True)
class Code:
    """The problem ``use: code`` of a study.

    path: the code problem's file, relative to the study's folder
    """

    path: str

    def bound(self, name: str, folder: Path | None) -> BoundCode:
        """The problem, read from its file; mistakes say where in that file they are."""
        path = (folder or Path()) / self.path
        try:
            return self.of(load_problem(path), name, str(path))
        except StudyError as error:
            raise StudyError(
                [_seen_from_study(each, error.source) for each in error.mistakes]
            ) from error

    @staticmethod
    def of(problem: CodeProblem, name: str, source: str = "") -> BoundCode:
        """The problem as runs have it, if candidates could change anything of it."""
        refuse_matching_nothing(problem, source)
        return BoundCode(problem, name)


def _seen_from_study(mistake: Mistake, source: str) -> Mistake:
    """A mistake in the problem's file, for somebody who looks at the study's."""
    file = source if mistake.line is None else f"{source}:{mistake.line}"
    place = f"{spell_path(mistake.path)}: " if mistake.path else ""
    return Mistake(("options", "path"), f"{file}: {place}{mistake.message}", mistake.hint)


@dataclass(frozen=True, slots=True)
class BoundCode(ProblemHooks):
    """A code problem as runs have it.

    code: the problem itself
    name: what the study calls it; by default what it calls itself
    settings: how the arena is to work where outputs are judged here
    """

    code: CodeProblem
    name: str = ""
    settings: ArenaSettings = _SETTINGS

    needs_own_folder = True

    @property
    def problem_id(self) -> str:
        """What the study calls it."""
        return self.name or self.code.problem_id

    @property
    def family(self) -> str:
        """`code`."""
        return self.code.family

    @property
    def brief(self) -> str:
        """What the agent is asked to do."""
        return self.code.brief

    def evaluate(self, output: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What an output comes to: a row for each of `UNITS`.

        An optimiser has judged its candidates and says what came of it. Of any other output, and of
        an optimiser's that was stored, the first of `diff`, `files`, `candidate` and `patch` is
        judged: its checks, and its speed if they pass.
        """
        if isinstance(output, Judged) or _has_nothing(output):
            return _rows(*_told(output))
        is_stored = isinstance(output, Stored)
        candidate = _read_stored(output) if is_stored else read_answer(output)
        with blaming_nobody():
            evaluation = judge_candidates(self.code, [candidate], slots=1, settings=self.settings)
        judgement = evaluation.judgements[0]
        figures, notes = _judged(judgement, output)
        if is_stored:
            _refuse_misfit(judgement)
            figures, notes = _with_told(figures, output), {BEST: str(output["best"]), **notes}
        return _rows(figures, notes)

    def fingerprint(self) -> Mapping[str, Any]:
        """Return what the problem's file says: the study only names it."""
        return cast("Mapping[str, Any]", dump(self.code))

    def stored_output(self, result: RunResult) -> Mapping[str, Any]:
        """Return a stored output, marked if its optimizer had judged its candidates itself."""
        is_judged = has_judged(result.evaluator_outputs)
        return Stored(result.outputs) if is_judged else result.outputs

    def progress_remark(self) -> Callable[[], str]:
        """Return a function that says which other process times on this machine, if one does."""
        return HostBusy()


def has_judged(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether evaluations are of an output that an optimiser had judged itself."""
    return any(BEST in (row.get("notes_json") or {}) for row in rows)


def _has_nothing(output: Mapping[str, Any]) -> bool:
    """Whether it is the output of an optimiser that found nothing worth taking."""
    is_optimisers = {"best", "patch", "why_over"} <= output.keys()
    return is_optimisers and output["best"] is None and not output["patch"]


def _read_stored(output: Mapping[str, Any]) -> Candidate:
    """What an optimiser found, as its run has stored it: byte for byte, where that is there."""
    edits = output.get("edits")
    if isinstance(edits, Mapping) and isinstance(edits.get("patch"), str):
        return Candidate("answer", diff=base64.b64decode(edits["patch"]))
    return read_answer(output)


def _refuse_misfit(judgement: Judgement) -> None:
    """What held for the base of its time isn't wrong since there is another base now."""
    rejection = judgement.rejection
    if rejection is not None and rejection.reason == Reason.UNUSABLE:
        raise LabError(f"the project has changed since this was found: {rejection.message}")


def _with_told(figures: Mapping[str, Any], output: Mapping[str, Any]) -> dict[str, Any]:
    """The best was judged again; how many others there were is as it was told."""
    told = {name: plain_number(output.get(name)) for name in ("candidates", "passed", "unjudged")}
    known = {name: number for name, number in told.items() if number is not None}
    if "passed" in known and not figures["passed"]:
        known["passed"] = max(known["passed"] - 1, 0)
    return {**figures, **known}


def read_answer(output: Mapping[str, Any]) -> Candidate:
    """The candidate that an output holds: a diff, whole files by path, or either in `candidate`.

    `patch` is another word for a diff.
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
        files = {str(path): _read_file(str(path), each) for path, each in given.items()}
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


def _told(output: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures and notes of an optimiser's output."""
    figures = {}
    for name in UNITS:
        key = next((key for key, same in _SAME.items() if same == name), name)
        value, number = output.get(key), plain_number(output.get(key))
        if value is not None and number is None:
            raise TypeError(f"the output's `{key}` must be a number or None, not {value!r:.80}")
        figures[name] = number
    best = output["best"]
    if best is None:
        return _as_base(figures), {BEST: None, "why": "nothing found is worth taking"}
    return figures, {BEST: str(best)}


def _judged(
    judgement: Judgement, output: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures and notes of an output that was judged here."""
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
    return {**figures, **dict.fromkeys(_SAME.values(), 1.0), "adopt": False}


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

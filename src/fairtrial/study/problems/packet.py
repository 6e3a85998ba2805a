"""Problem packets: a brief, what goes with it, and what judges the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.protocols import Problem

ANSWERS = ("candidate", "state", "answer", "solution", "final_answer", "x")
"""Where an output holds what is to be judged; the first of these that it has."""
_PARTS = ("problem_id", "family", "brief", "payload", "metadata", "evaluator")


@dataclass(frozen=True, slots=True)
class ProblemPacket:
    """A problem, written out.

    problem_id: its name
    family: the sort of problem it is
    brief: what the agent is asked to do
    payload: what the agent is given
    metadata: anything else
    evaluator: scores an answer; without one the agent's own metrics are all there is
    """

    problem_id: str
    family: str = "unknown"
    brief: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    evaluator: Callable[[Any], Any] | None = None

    def evaluate(self, output: Mapping[str, Any]) -> Any:
        """The evaluator's verdict; None without an evaluator.

        It gets the output's `candidate`, `state`, `answer`, `solution`, `final_answer` or `x`
        (the first that there is), or else the whole output.
        """
        if self.evaluator is None:
            return None
        for name in ANSWERS:
            if name in output:
                return self.evaluator(output[name])
        return self.evaluator(output)


def resolve_problem(
    problem_spec_ref: Any, *, registry: Mapping[str, Any] | None = None
) -> ProblemPacket | Problem:
    """The problem that a packet, a mapping, a `Problem` or a name in `registry` stands for."""
    if not isinstance(problem_spec_ref, str):
        return _make_problem(problem_spec_ref, "problem")
    known = registry or {}
    if problem_spec_ref not in known:
        raise StudyError(
            Mistake(
                (),
                f"there is no problem '{problem_spec_ref}' in the registry",
                did_you_mean(problem_spec_ref, known),
            )
        )
    return _make_problem(known[problem_spec_ref], problem_spec_ref)


def _make_problem(given: Any, name: str) -> ProblemPacket | Problem:
    if isinstance(given, Mapping):
        return _make_packet(given, name)
    missing = [
        part for part in ("problem_id", "family", "brief", "evaluate") if not hasattr(given, part)
    ]
    if isinstance(given, type) or missing:
        lacks = f": it has no {', '.join(missing)}" if missing else ""
        raise StudyError(
            Mistake(
                (),
                f"a value of type {type(given).__qualname__} is no problem{lacks}",
                "a problem is a ProblemPacket, a mapping of its fields, or an object with "
                "problem_id, family, brief and evaluate(output)",
            )
        )
    return given  # type: ignore[no-any-return]


def _make_packet(given: Mapping[str, Any], name: str) -> ProblemPacket:
    mistakes = [
        Mistake((str(key),), "unknown key", did_you_mean(str(key), _PARTS))
        for key in given
        if key not in _PARTS
    ]
    evaluator = given.get("evaluator")
    if evaluator is not None and not callable(evaluator):
        mistakes.append(Mistake(("evaluator",), "must be a function of the answer"))
    mistakes.extend(
        Mistake((part,), "must be a mapping")
        for part in ("payload", "metadata")
        if not isinstance(given.get(part, {}), Mapping)
    )
    if mistakes:
        raise StudyError(mistakes)
    return ProblemPacket(
        problem_id=str(given.get("problem_id", name)),
        family=str(given.get("family", "unknown")),
        brief=str(given.get("brief", "")),
        payload=given.get("payload", {}),
        metadata=given.get("metadata", {}),
        evaluator=evaluator,
    )

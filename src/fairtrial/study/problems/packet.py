"""Problem packets: a brief with its payload, and the evaluator of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.protocols import Problem

ANSWER_KEYS = ("candidate", "state", "answer", "solution", "final_answer", "x")
"""The keys under which an output may hold the answer to evaluate; the first one present counts."""
_PACKET_KEYS = (
    "problem_id",
    "family",
    "brief",
    "payload",
    "metadata",
    "evaluator",
    "reference",
    "hidden",
)


@dataclass(frozen=True, slots=True)
class ProblemPacket:
    """A problem given by its parts.

    problem_id: its name
    family: the kind of problem
    brief: the instructions for the agent
    payload: the data for the agent
    metadata: further facts
    evaluator: scores an answer; without one, a run has only the agent's own metrics
    reference: the right answer; agents get the packet without it
    hidden: further data for evaluators; agents get the packet without them
    """

    problem_id: str
    family: str = "unknown"
    brief: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    evaluator: Callable[[Any], Any] | None = None
    reference: Any = None
    hidden: Mapping[str, Any] = field(default_factory=dict)

    def evaluate(self, output: Mapping[str, Any]) -> Any:
        """Return the evaluator's verdict; None without an evaluator.

        The evaluator gets the output's `candidate`, `state`, `answer`, `solution`, `final_answer`
        or `x` (the first one present), or else the whole output.
        """
        if self.evaluator is None:
            return None
        return self.evaluator(find_answer(output))


def find_answer(output: Mapping[str, Any]) -> Any:
    """Return the answer in an output: the first of `ANSWER_KEYS` that it has, else all of it."""
    for name in ANSWER_KEYS:
        if name in output:
            return output[name]
    return output


def resolve_problem(
    problem_spec_ref: Any, *, registry: Mapping[str, Any] | None = None
) -> ProblemPacket | Problem:
    """Return the problem for a packet, a mapping, a `Problem` or a name in `registry`.

    Raises `StudyError` for an unknown name or a value that is no problem.
    """
    if not isinstance(problem_spec_ref, str):
        return _make_problem(problem_spec_ref, "problem")
    registry = registry or {}
    if problem_spec_ref not in registry:
        raise StudyError(
            Mistake(
                (),
                f"there is no problem '{problem_spec_ref}' in the registry",
                did_you_mean(problem_spec_ref, registry),
            )
        )
    return _make_problem(registry[problem_spec_ref], problem_spec_ref)


def _make_problem(value: Any, name: str) -> ProblemPacket | Problem:
    if isinstance(value, Mapping):
        return _make_packet(value, name)
    missing = [
        part for part in ("problem_id", "family", "brief", "evaluate") if not hasattr(value, part)
    ]
    if isinstance(value, type) or missing:
        lacks = f": it has no {', '.join(missing)}" if missing else ""
        raise StudyError(
            Mistake(
                (),
                f"a value of type {type(value).__qualname__} is no problem{lacks}",
                "a problem is a ProblemPacket, a mapping of its fields, or an object with "
                "problem_id, family, brief and evaluate(output)",
            )
        )
    return value  # type: ignore[no-any-return]


def _make_packet(fields: Mapping[str, Any], name: str) -> ProblemPacket:
    mistakes = [
        Mistake((str(key),), "unknown key", did_you_mean(str(key), _PACKET_KEYS))
        for key in fields
        if key not in _PACKET_KEYS
    ]
    evaluator = fields.get("evaluator")
    if evaluator is not None and not callable(evaluator):
        mistakes.append(Mistake(("evaluator",), "must be a function of the answer"))
    mistakes.extend(
        Mistake((part,), "must be a mapping")
        for part in ("payload", "metadata", "hidden")
        if not isinstance(fields.get(part, {}), Mapping)
    )
    if mistakes:
        raise StudyError(mistakes)
    return ProblemPacket(
        problem_id=str(fields.get("problem_id", name)),
        family=str(fields.get("family", "unknown")),
        brief=str(fields.get("brief", "")),
        payload=fields.get("payload", {}),
        metadata=fields.get("metadata", {}),
        evaluator=evaluator,
        reference=fields.get("reference"),
        hidden=fields.get("hidden", {}),
    )

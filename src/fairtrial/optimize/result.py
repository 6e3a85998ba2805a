"""The result of an optimization, and its form in a study's ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairtrial.arena import CodeProblem, Estimate, delivery
from fairtrial.core import notebook_html, plain_number
from fairtrial.optimize.journal import problem_fingerprint
from fairtrial.optimize.output_format import KIND, is_optimization_output


@dataclass(frozen=True, slots=True)
class OptimizationResult:
    """The result of an optimization.

    best: the id of the confirmed winner; None if no candidate is worth adopting
    estimate: its speed relative to the base, by fresh sessions alone
    edits: its changes
    explanation: its description for a pull request, in Markdown
    candidates: how many candidates were judged
    passed: how many of them passed their checks
    unjudged: how many couldn't be judged, since the evaluator itself failed
    tokens: the tokens of all replies
    cost_usd: the cost of all replies; None if that isn't known
    why_over: why no more candidates were requested
    tree: the digest of the base
    problem: the fingerprint of the problem
    notes: what people should know
    dropped: the candidates that looked better than the winner and weren't confirmed, by id, with
        the reason
    adequacy: what the checks reject, as plain data; None if they were not audited
    """

    best: str | None = None
    estimate: Estimate | None = None
    edits: delivery.FileEdits | None = field(default=None, repr=False)
    explanation: str = field(default="", repr=False)
    candidates: int = 0
    passed: int = 0
    unjudged: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    why_over: str = ""
    tree: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    adequacy: Mapping[str, Any] | None = None

    @property
    def patch(self) -> str:
        """The winner's change against the base as text; empty if there is no winner."""
        return self.edits.patch.decode("utf-8", "replace") if self.edits else ""

    @property
    def speed_text(self) -> str:
        """The winner's speed relative to the base, with its interval; empty if it isn't known."""
        return self.estimate.text() if self.estimate else ""

    def _repr_html_(self) -> str:
        """Return the result for a notebook."""
        cost = None if self.cost_usd is None or not self.cost_usd else f"${self.cost_usd:,.4g}"
        return notebook_html.compose(
            f"{self.best}: {self.speed_text}" if self.best else "No candidate is worth adopting",
            notebook_html.facts(
                [
                    ("candidates", self.candidates),
                    ("passed", self.passed),
                    ("not judged", self.unjudged or None),
                    ("tokens", self.tokens or None),
                    ("cost", cost),
                    ("ended", self.why_over),
                ]
            ),
            notebook_html.items(self.notes),
            notebook_html.code_block("Patch", self.patch),
            notebook_html.code_block("Explanation", self.explanation),
            kind="result of an optimization",
        )

    def is_for(self, problem: CodeProblem) -> bool:
        """Return whether it is a result for this problem, as it is now."""
        return self.problem == problem_fingerprint(problem)

    def to_output(self) -> dict[str, Any]:
        """Return plain data, as a study stores it and ``fairtrial optimize --json`` prints it."""
        estimate = self.estimate
        return {
            "kind": KIND,
            "best": self.best,
            "ratio": estimate.ratio if estimate else None,
            "low": estimate.low if estimate else None,
            "high": estimate.high if estimate else None,
            "confidence": estimate.confidence if estimate else None,
            "adopt": self.best is not None,
            "sessions": estimate.sessions if estimate else None,
            "candidates": self.candidates,
            "passed": self.passed,
            "unjudged": self.unjudged,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
            "why_over": self.why_over,
            "tree": self.tree,
            "problem": self.problem,
            "patch": self.patch,
            "edits": self.edits.as_dict() if self.edits else {},
            "explanation": self.explanation,
            "notes": list(self.notes),
            "out": dict(self.dropped),
            **({} if self.adequacy is None else {"adequacy": dict(self.adequacy)}),
        }

    @classmethod
    def from_output(cls, output: Mapping[str, Any]) -> OptimizationResult | None:
        """Return the result that an output holds; None if it isn't one of an optimization.

        Raise a `TypeError` if one of its values has another type.
        """
        if not is_optimization_output(output):
            return None
        best, edits = output.get("best"), output.get("edits")
        cost_usd = _read_number(output, "cost_usd")
        return cls(
            best=None if best is None else str(best),
            estimate=_read_estimate(output),
            edits=delivery.FileEdits.from_dict(edits) if edits else None,
            explanation=str(output.get("explanation") or ""),
            candidates=int(_read_number(output, "candidates") or 0),
            passed=int(_read_number(output, "passed") or 0),
            unjudged=int(_read_number(output, "unjudged") or 0),
            tokens=int(_read_number(output, "tokens") or 0),
            cost_usd=None if cost_usd is None else float(cost_usd),
            why_over=str(output.get("why_over") or ""),
            tree=str(output.get("tree") or ""),
            problem=str(output.get("problem") or ""),
            notes=tuple(str(note) for note in output.get("notes") or ()),
            dropped={str(id): str(why) for id, why in (output.get("out") or {}).items()},
            adequacy=_read_mapping(output, "adequacy"),
        )


class JudgedOutput(dict[str, Any]):
    """An output whose candidates were judged by the optimizer itself, in this process.

    An output that is read back or comes from another agent is a plain mapping, and its patch is
    judged like any other.

    result: the result that it holds
    """

    __slots__ = ("result",)

    def __init__(self, result: OptimizationResult) -> None:
        super().__init__(result.to_output())
        self.result = result


def _read_mapping(output: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = output.get(key)
    return value if isinstance(value, Mapping) else None


def _read_number(output: Mapping[str, Any], key: str) -> float | int | None:
    value = output.get(key)
    number = plain_number(value)
    if value is not None and number is None:
        raise TypeError(f"the output's `{key}` must be a number or None, not {value!r:.80}")
    return number


def _read_estimate(output: Mapping[str, Any]) -> Estimate | None:
    ratio, low, high, sessions, confidence = (
        _read_number(output, key) for key in ("ratio", "low", "high", "sessions", "confidence")
    )
    if ratio is None or low is None or high is None:
        return None
    return Estimate(ratio, low, high, int(sessions or 0), confidence or 0.0)

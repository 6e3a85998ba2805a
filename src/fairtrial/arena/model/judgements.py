"""The final judgement of a candidate: verdict, evidence, cost and timing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fairtrial.arena.model.plain_data import measured_as_dict
from fairtrial.arena.model.timings import Measurement, describe_verdict
from fairtrial.arena.model.verdicts import Basis, Failure, Reason, Rejection, Verdict
from fairtrial.core import notebook_html


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one candidate.

    name: the candidate's name
    digest: the digest of its normalized changes; empty if it equals the base or is unusable
    verdict: the result of its checks, and of its timing if it was timed
    basis: the kind of evidence behind the verdict
    rejection: why it was rejected, if it was
    duplicate_of: the name of the candidate (or "base") whose verdict it inherits
    not_exercised: changed files that no check loaded
    notes: further remarks for the user
    check_s: wall time of its checks, in seconds
    cpu_s: CPU time of its checks, in seconds
    peak_rss_mb: peak memory of its checks
    measurement: the timing result, if it was timed
    """

    name: str
    digest: str
    verdict: Verdict
    basis: Basis = Basis.NOTHING
    rejection: Rejection | None = None
    duplicate_of: str | None = None
    not_exercised: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    check_s: float = 0.0
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0
    measurement: Measurement | None = None

    @property
    def is_unjudged(self) -> bool:
        """Whether the evaluation itself failed, so that nothing is known about the candidate."""
        return self.rejection is not None and self.rejection.reason == Reason.EVALUATOR

    def inherited_by(self, name: str) -> Judgement:
        """Return this judgement for a duplicate: a candidate with the same normalized changes."""
        origin = self.duplicate_of or self.name
        return replace(self, name=name, duplicate_of=origin, check_s=0.0, cpu_s=0.0)

    def with_timing(self, result: Measurement | Rejection) -> Judgement:
        """Return this judgement of a candidate that passed, completed with its timing."""
        if isinstance(result, Measurement):
            return replace(self, verdict=result.verdict, measurement=result)
        is_evaluator_failure = result.reason == Reason.EVALUATOR
        verdict = Verdict.INCONCLUSIVE if is_evaluator_failure else Verdict.REJECTED
        return replace(self, verdict=verdict, rejection=result.cleaned())

    @property
    def verdict_text(self) -> str:
        """The verdict, with its interval if the candidate was timed."""
        estimate = self.measurement.estimate if self.measurement else None
        return describe_verdict(self.verdict, estimate)

    def _repr_html_(self) -> str:
        """Return the judgement for a notebook."""
        measured = self.measurement
        return notebook_html.compose(
            self.name,
            notebook_html.facts(
                [
                    ("verdict", self.verdict_text),
                    ("rests on", self.basis.value),
                    ("same as", self.duplicate_of),
                    ("checks", f"{self.check_s:.2g} s" if self.check_s else None),
                ]
            ),
            notebook_html.facts([("rejected", self.rejection)]),
            notebook_html.table(
                ("benchmark", "verdict", "speed"),
                [
                    (one.benchmark, one.verdict.value, one.estimate.text() if one.estimate else "–")
                    for one in measured.timings
                ],
            )
            if measured
            else "",
            notebook_html.items([*self.notes, *(measured.notes if measured else ())]),
            kind="judgement of a candidate",
        )

    def headline(self) -> dict[str, Any]:
        """Return what the candidate is and what was decided, and why, as plain data."""
        return {
            "name": self.name,
            "digest": self.digest,
            "verdict": self.verdict.value,
            "basis": self.basis.value,
            "reason": str(self.rejection) if self.rejection else None,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``--json`` prints it."""
        measured = self.measurement
        estimate = measured.estimate if measured else None
        return {
            **self.headline(),
            "failures": [failure.as_dict() for failure in self.failures],
            "duplicate_of": self.duplicate_of,
            "ratio": estimate.ratio if estimate else None,
            "interval": [estimate.low, estimate.high] if estimate else None,
            "sessions": estimate.sessions if estimate else None,
            "check_s": round(self.check_s, 3),
            "bench_s": round(measured.seconds, 3) if measured else None,
            "peak_rss_mb": round(self.peak_rss_mb, 1),
            "not_exercised": list(self.not_exercised),
            "notes": [*self.notes, *(measured.notes if measured else ())],
            **measured_as_dict(measured),
        }

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The first failures of its checks; empty if it passed."""
        return self.rejection.failures if self.rejection else ()

"""The final judgment of a candidate: verdict, evidence, cost and timing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairtrial.arena.model.timings import Measurement
from fairtrial.arena.model.verdicts import Basis, Reason, Rejection, Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgment of one candidate.

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
        """Return this judgment for a duplicate: a candidate with the same normalized changes."""
        origin = self.duplicate_of or self.name
        return replace(self, name=name, duplicate_of=origin, check_s=0.0, cpu_s=0.0)

"""All that is known of a candidate in the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairtrial.arena.model.timings import Measurement
from fairtrial.arena.model.verdicts import Basis, Reason, Rejection, Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that is known of one candidate.

    name: the candidate's
    digest: the candidate's, normalised; empty for one that is equal to the base or unusable
    verdict: what it is
    basis: what the verdict rests on
    rejection: why it is out, if it is
    duplicate_of: the name of the candidate (or "base") whose verdict it inherits
    not_exercised: changed files that no check loaded
    notes: what else people should know
    check_s: how long its checks took
    cpu_s: the CPU time they used
    peak_rss_mb: the most memory they held
    measurement: what the clock said of it, if it was timed
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
        """Whether something of ours failed while it was judged: nothing is known of it."""
        return self.rejection is not None and self.rejection.reason == Reason.EVALUATOR

    def inherited_by(self, name: str) -> Judgement:
        """The same verdict for a candidate that is the same after normalisation."""
        origin = self.duplicate_of or self.name
        return replace(self, name=name, duplicate_of=origin, check_s=0.0, cpu_s=0.0)

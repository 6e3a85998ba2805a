"""The second opinion on a winner: claims made of sessions, and what whole processes say of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.figures import seconds_text, share_text
from fairtrial.arena.model.timings import Measurement, Timing, TotalCheck, TotalVerdict
from fairtrial.arena.model.verdicts import Rejection, Verdict
from fairtrial.arena.timing.repeated_inputs import RepeatedInputs, weigh_repeats
from fairtrial.arena.timing.stats.ratio_text import ratio_text
from fairtrial.arena.timing.stats.reconciliation import LARGE_CLAIM, SavingClaim

LEAST_LIMIT_S = 15.0
"""How long the check of a benchmark may take at least; only busy machines need as long."""
SHARE_OF_SESSIONS = 0.5
"""The same as a share of the time of all sessions; the larger of both holds."""


@dataclass(slots=True)
class TotalBatch:
    """The checks of one candidate.

    checks: one for each benchmark that could be checked
    seconds: how long they took
    waited_s: how long the exclusive host lock was waited for
    rejection: set if the candidate failed meanwhile
    vetoes: reasons against adopting any candidate by these benchmarks
    repeats: benchmarks whose inputs repeat
    """

    checks: tuple[TotalCheck, ...] = ()
    seconds: float = 0.0
    waited_s: float = 0.0
    rejection: Rejection | None = None
    vetoes: tuple[str, ...] = ()
    repeats: tuple[RepeatedInputs, ...] = ()


class TotalTimer(ABC):
    """A timer that can also run whole processes; simulated ones need not."""

    @abstractmethod
    async def check_totals(
        self, changes: Changes, label: str, claims: Mapping[str, SavingClaim], limit_s: float
    ) -> TotalBatch:
        """Compare claimed savings with whole processes.

        label: seeds the inputs
        claims: what sessions claim, by benchmark
        limit_s: about how long the check of each benchmark may take
        """


def find_claims(measured: Measurement) -> dict[str, SavingClaim]:
    """Return the claimed savings of a measurement, by benchmark."""
    claims = {timing.benchmark: _find_claim(timing) for timing in measured.timings}
    return {name: claim for name, claim in claims.items() if claim is not None}


def _find_claim(timing: Timing) -> SavingClaim | None:
    """Return what a benchmark claims: by sums, where they are known."""
    estimate = timing.total or timing.estimate
    if estimate is None or estimate.ratio <= 1:
        return None
    # Several benchmarks can be faster together though the interval of each includes 1.
    if timing.verdict != Verdict.FASTER and estimate.low <= 1 and estimate.ratio < LARGE_CLAIM:
        return None
    return SavingClaim(
        estimate.ratio, estimate.low, timing.cpu_ratio, max(timing.startup_extra_s or 0.0, 0.0)
    )


def limit_checks(measured: Measurement) -> float:
    """Return how long the check of each benchmark may take."""
    share_s = SHARE_OF_SESSIONS * measured.seconds / max(len(measured.timings), 1)
    return max(LEAST_LIMIT_S, share_s)


def add_checks(measured: Measurement, batch: TotalBatch) -> Measurement:
    """Return a measurement with its checks, and with the vetoes and notes that follow from them."""
    claims = find_claims(measured)
    vetoes, notes = weigh_repeats(batch.repeats, batch.checks, claims)
    vetoes = [*batch.vetoes, *vetoes]
    for check in batch.checks:
        ratio = claims[check.benchmark].ratio
        if check.verdict == TotalVerdict.CONTRADICTED:
            vetoes.append(_describe_contradiction(check))
        elif check.is_unseen:
            continue  # told above
        elif check.verdict == TotalVerdict.UNCLEAR and check.varied:
            notes.append(_describe_unclear_variation(check))
        elif check.verdict == TotalVerdict.UNCLEAR and ratio >= LARGE_CLAIM:
            vetoes.append(_describe_unclear(check))
        elif check.verdict == TotalVerdict.UNCLEAR:
            notes.append(_describe_small(check, ratio))
    return replace(
        measured,
        adopt=measured.adopt and not vetoes,
        vetoes=(*measured.vetoes, *vetoes),
        notes=(*measured.notes, *notes),
        seconds=measured.seconds + batch.seconds,
        waited_s=measured.waited_s + batch.waited_s,
        total_checks=batch.checks,
    )


def are_confirmed(batch: TotalBatch) -> bool:
    """Return whether whole processes confirm all claims that they were compared with."""
    checks = [check for check in batch.checks if not check.is_unseen]
    return bool(checks) and all(check.verdict == TotalVerdict.CONFIRMED for check in checks)


def describe_total_check(check: TotalCheck) -> str:
    """Format like ``97 % of the saving of 0.4 ms per call appears in the total [90 %, 104 %]``."""
    if check.varied:
        return (
            f"{share_text(check.share)} of the saving of {seconds_text(check.claimed_s)} per run "
            f"appears with variations of {check.varied} "
            f"[{share_text(check.low)}, {share_text(check.high)}]"
        )
    if check.is_unseen:
        return (
            f"{share_text(check.share)} of the saving of {seconds_text(check.claimed_s)} per call "
            "appears when processes get each input once "
            f"[{share_text(check.low)}, {share_text(check.high)}]"
        )
    time = "total CPU time" if check.clock == "cpu" else "total"
    return (
        f"{share_text(check.share)} of the saving of {seconds_text(check.claimed_s)} per call "
        f"appears in the {time} of whole processes "
        f"[{share_text(check.low)}, {share_text(check.high)}]"
    )


def _describe_contradiction(check: TotalCheck) -> str:
    if check.varied:
        return (
            f"{check.benchmark}: the saving of {seconds_text(check.claimed_s)} per run doesn't "
            f"appear if a few lines of {check.varied} are left out: a run takes {_figures(check)}, "
            f"which is {share_text(check.share)} of the saving [{share_text(check.low)}, "
            f"{share_text(check.high)}]; the gain seems to hold for this input alone"
        )
    if check.is_unseen:
        return (
            f"{check.benchmark}: the saving of {seconds_text(check.claimed_s)} per call doesn't "
            f"appear when processes get each input once: a call takes {_figures(check)}, which is "
            f"{share_text(check.share)} of the saving [{share_text(check.low)}, "
            f"{share_text(check.high)}]. Inputs repeat here, so results may be remembered, or the "
            "first call does more; use inputs that vary"
        )
    return (
        f"{check.benchmark}: the saving of {seconds_text(check.claimed_s)} per call doesn't appear "
        f"in the total: with reading and writing, children and all else a call takes "
        f"{_figures(check)}, which is {share_text(check.share)} of the saving "
        f"[{share_text(check.low)}, {share_text(check.high)}]"
    )


def _describe_unclear(check: TotalCheck) -> str:
    figures = (
        f"{_figures(check)}; {share_text(check.share)} of the saving "
        f"[{share_text(check.low)}, {share_text(check.high)}]"
    )
    claim = f"{check.benchmark}: the saving of {seconds_text(check.claimed_s)} per call"
    if check.high < 1:
        return f"{claim} appears only in part in the total of whole processes ({figures})"
    return (
        f"{claim} could not be reconciled with the total of {check.blocks * 4} whole processes: "
        f"they vary too much here ({figures}). That says nothing against the candidate; measure it "
        "again when the machine has less to do"
    )


def _describe_unclear_variation(check: TotalCheck) -> str:
    return (
        f"{check.benchmark}: runs with variations of {check.varied} vary too much to show whether "
        f"the gain holds for other input ({_figures(check)})"
    )


def _describe_small(check: TotalCheck, ratio: float) -> str:
    return (
        f"{check.benchmark}: whole processes vary too much to show a gain of {ratio_text(ratio)} "
        "in their total, so it rests on the sessions alone; so small a gain can't hide much"
    )


def _figures(check: TotalCheck) -> str:
    if check.clock == "cpu" and None not in (check.base_cpu_s, check.candidate_cpu_s):
        pair, clock = (check.candidate_cpu_s or 0.0, check.base_cpu_s or 0.0), " of CPU time"
    else:
        pair, clock = (check.candidate_s, check.base_s), ""
    return f"{seconds_text(pair[0])}{clock}, {seconds_text(pair[1])} on the base"

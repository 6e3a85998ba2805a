"""Benchmarks whose inputs repeat: gains that may rest on answers known by heart aren't adopted.

A candidate can remember results, bring them along, or make them before the first call. So a gain
must be shown where no input repeats: in processes that get each input once, or by a benchmark of
the same function with inputs that vary. What can't be shown is not adopted, unless the problem says
that candidates are trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairtrial.arena.model.figures import seconds_text, share_text
from fairtrial.arena.model.timings import TotalCheck, TotalVerdict
from fairtrial.arena.timing.function_benchmark import FunctionBenchmark
from fairtrial.arena.timing.prepared_benchmark import PreparedBenchmark
from fairtrial.arena.timing.stats.reconciliation import SavingClaim

_REMEDY = (
    "That says nothing against the candidate; use inputs that vary, more of them or longer calls, "
    "or `trust: all` if you trust who wrote the candidates"
)


@dataclass(frozen=True, slots=True)
class RepeatedInputs:
    """A benchmark whose inputs repeat, and for which a gain is claimed.

    benchmark: its name
    check: what processes say that get each input once; None if their calls are too short to tell
    is_suite: whether it belongs to a suite, whose own code calls the candidate in its process
    is_trusted: whether the problem says that candidates are trusted
    others: benchmarks of the same function whose inputs vary
    """

    benchmark: str
    check: TotalCheck | None
    is_suite: bool = False
    is_trusted: bool = False
    others: tuple[str, ...] = ()

    def find_doubt(self) -> str:
        """Return why processes don't show the gain for new inputs; empty if they do, or deny it."""
        check = self.check
        if check is not None and check.verdict == TotalVerdict.CONTRADICTED:
            return ""
        if self.is_suite and not self.is_trusted:
            return (
                f"{self.benchmark}: a suite's inputs are known to candidates, and its code runs in "
                "their process, so its gain alone doesn't show that they compute less. That says "
                "nothing against the candidate; time a call with inputs that vary, or use "
                "`trust: all` if you trust who wrote the candidates"
            )
        if check is None and self.is_suite:
            return ""  # its inputs are the same in every call, which is said anyway
        if check is None:
            return (
                f"{self.benchmark}: inputs repeat, and the different ones take too little time "
                f"together to show whether the gain holds without remembered results. {_REMEDY}"
            )
        if check.verdict == TotalVerdict.CONFIRMED:
            return ""
        return (
            f"{self.benchmark}: inputs repeat, and processes that get each input once vary too "
            "much to show whether the gain holds without remembered results "
            f"({seconds_text(check.candidate_s)}, {seconds_text(check.base_s)} on the base; "
            f"{share_text(check.share)} of the saving [{share_text(check.low)}, "
            f"{share_text(check.high)}]). {_REMEDY}"
        )


def describe_repeats(
    benchmark: FunctionBenchmark, check: TotalCheck | None, others: Iterable[PreparedBenchmark]
) -> RepeatedInputs:
    """Return what is known of a benchmark whose inputs repeat.

    check: see `RepeatedInputs`
    others: all benchmarks of the problem
    """
    timed = benchmark.benchmark
    varied = (
        other.name
        for other in others
        if isinstance(other, FunctionBenchmark)
        and timed.call
        and other.benchmark.call == timed.call
        and not (other.repeats or other.same_inputs)
    )
    return RepeatedInputs(
        benchmark.name, check, bool(timed.suite), timed.trust == "all", tuple(varied)
    )


def weigh_repeats(
    repeats: Sequence[RepeatedInputs],
    checks: Sequence[TotalCheck],
    claims: Mapping[str, SavingClaim],
) -> tuple[list[str], list[str]]:
    """Return the vetoes and notes that follow from benchmarks whose inputs repeat.

    checks: what whole processes say, of all benchmarks
    claims: what sessions claim, by benchmark
    """
    vetoes, notes = [], []
    for item in repeats:
        doubt = item.find_doubt()
        if not doubt:
            continue
        elsewhere = next(_find_shown(item, checks, claims), "")
        if elsewhere:
            notes.append(
                f"{item.benchmark}: inputs repeat; {elsewhere}, whose inputs vary, shows the gain"
            )
        elif item.is_trusted:
            notes.append(f"{doubt.partition('. ')[0]}; candidates are trusted here (`trust: all`)")
        else:
            vetoes.append(doubt)
    return vetoes, notes


def _find_shown(
    item: RepeatedInputs, checks: Sequence[TotalCheck], claims: Mapping[str, SavingClaim]
) -> Iterator[str]:
    """Yield benchmarks with inputs that vary that show at least half of the gain.

    Half on the logarithmic scale, on which verdicts take the mean: 3x shows 9x.
    """
    for check in checks:
        is_confirmed = check.verdict == TotalVerdict.CONFIRMED and not check.is_unseen
        if is_confirmed and check.benchmark in item.others:
            shown, claimed = (claims[name].ratio for name in (check.benchmark, item.benchmark))
            if shown**2 >= claimed:
                yield check.benchmark

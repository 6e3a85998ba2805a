"""How noisy a machine is, as people read it: what `fairtrial aa` found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.cli.output import labelled, note, print_wrapped
from fairtrial.cli.table import print_table
from fairtrial.cli.timings import percent_text, rough_seconds, seconds_text
from fairtrial.stats.sequential import LOOKS
from fairtrial.stats.visibility import Rate, seconds_needed, visible_effect, visible_within

WITHIN_S = (5.0, 20.0, 60.0)
MOST_SESSIONS = LOOKS[-1]


@dataclass(frozen=True, slots=True)
class Noise:
    """What comparing the base with itself showed of one benchmark.

    benchmark: what was timed
    claims: how often a difference was claimed
    spread: the standard deviation of session statistics
    session_s: how long a session takes
    """

    benchmark: str
    claims: Rate
    spread: float
    session_s: float


def print_noise(found: Sequence[Noise], *, alpha: float, min_effect: float) -> None:
    """A row for each benchmark, and whether the effect that is asked for can be seen here."""
    within = [f"in {seconds:.0f} s" for seconds in WITHIN_S]
    print_table(
        ["benchmark", "claims", "spread", "session", *within],
        [
            [
                each.benchmark,
                f"{each.claims.count} of {each.claims.total}",
                percent_text(each.spread),
                seconds_text(each.session_s),
                *(visible_text(each, seconds, alpha) for seconds in WITHIN_S),
            ]
            for each in found
        ],
        total=len(found),
    )
    for each in found:
        print_wrapped(claims_text(each, alpha), "", "  ")
    for each in found:
        told, is_enough = outlook(each, alpha, min_effect)
        if is_enough:
            print_wrapped(told, "", "  ")
        else:
            note(labelled("warning", told, "yellow"))


def visible_text(noise: Noise, seconds: float, alpha: float) -> str:
    """The smallest effect that is seen in so many seconds, four times out of five: `1.9 %`."""
    effect = visible_within(noise.spread, noise.session_s, seconds, alpha)
    return "too short" if effect is None else percent_text(effect)


def claims_text(noise: Noise, alpha: float) -> str:
    """How often a difference was claimed where there is none, and whether that is too often."""
    rate = noise.claims
    text = (
        f"{noise.benchmark}: of {rate.total} comparisons of the base with itself {rate.count} "
        f"claimed a difference: {_share(rate.share)}, which may be {_share(rate.low)} to "
        f"{_share(rate.high)} in the long run; {percent_text(alpha)} are allowed"
    )
    return f"{text}. That is too many: don't trust verdicts here" if rate.low > alpha else text


def outlook(noise: Noise, alpha: float, min_effect: float) -> tuple[str, bool]:
    """How long it takes to see the effect that is asked for, and whether it can be seen at all."""
    wanted = f"{noise.benchmark}: an effect of {percent_text(min_effect)}"
    needed_s = seconds_needed(min_effect, noise.spread, noise.session_s, alpha)
    if needed_s is not None:
        return (
            f"{wanted} is seen here within {rough_seconds(needed_s)}, four times out of five",
            True,
        )
    least = visible_effect(noise.spread, MOST_SESSIONS, alpha)
    seen = "" if least is None else f", and none below {percent_text(least)} is"
    return (
        f"{wanted} is too small for this machine: in {MOST_SESSIONS} sessions it is not seen four "
        f"times out of five{seen}. Raise min_effect, quieten the machine (`fairtrial doctor`), or "
        "make the benchmark longer",
        False,
    )


def _share(share: float) -> str:
    return "0 %" if share == 0 else percent_text(share)

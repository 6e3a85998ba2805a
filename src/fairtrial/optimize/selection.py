"""Ranking of candidates: by the lower bound of their speed, among ties by the smaller change."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.arena import Estimate, Verdict
from fairtrial.optimize.lineage import CandidateEntry


def rank(entries: Sequence[CandidateEntry], min_effect: float) -> tuple[CandidateEntry, ...]:
    """Return the candidates that are worth adopting, the best first.

    The leader has the highest lower bound. Of the candidates that can't be distinguished from the
    leader, the smallest change comes first. The rest is ranked in the same way.
    """
    left = {
        entry.id: estimate for entry in entries if (estimate := _find_estimate(entry, min_effect))
    }
    by_id = {entry.id: entry for entry in entries}
    ranked = []
    while left:
        leader = left[min(left, key=lambda id: (-left[id].low, _get_place(by_id[id])))]
        tied = [id for id in left if left[id].is_tied(leader, min_effect)]
        first = min(
            tied, key=lambda id: (change_size(by_id[id]), -left[id].low, _get_place(by_id[id]))
        )
        ranked.append(by_id[first])
        del left[first]
    return tuple(ranked)


def _find_estimate(entry: CandidateEntry, min_effect: float) -> Estimate | None:
    """Return the speed of a candidate that is worth adopting; None for others.

    It must be faster by `min_effect`, with a lower bound above 1 and nothing against it.
    Duplicates are left out, since their original is ranked.
    """
    tried = entry.tried
    if tried is None or entry.duplicate_of is not None or tried.verdict != Verdict.FASTER:
        return None
    if tried.why or tried.estimate is None or tried.estimate.low <= 1.0:
        return None
    return tried.estimate if tried.estimate.ratio >= 1 + min_effect else None


def change_size(entry: CandidateEntry) -> tuple[int, int]:
    """Return the size of a change: added and removed lines, then characters.

    The headers of files count as lines, so that touching another file makes it larger.
    """
    diff = entry.tried.diff if entry.tried else ""
    return sum(line.startswith(("+", "-")) for line in diff.splitlines()), len(diff)


def _get_place(entry: CandidateEntry) -> tuple[int, int]:
    return entry.step, entry.lineage

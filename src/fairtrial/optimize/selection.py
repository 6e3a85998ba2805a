"""Who is the best: by what is certain, and among equals by the smaller change."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.arena import Estimate, Verdict
from fairtrial.optimize.lineage import Entry


def select(entries: Sequence[Entry], min_effect: float) -> Entry | None:
    """The best so far; None if none is worth taking."""
    return next(iter(rank(entries, min_effect)), None)


def rank(entries: Sequence[Entry], min_effect: float) -> tuple[Entry, ...]:
    """Those that are worth taking, the best first.

    The leader is who is certainly the fastest: the highest lower bound. Of those that can't be told
    from the leader the smallest change comes first. Then the same for those that are left.
    """
    left = {entry.id: estimate for entry in entries if (estimate := _worth(entry, min_effect))}
    by_id = {entry.id: entry for entry in entries}
    ranked = []
    while left:
        leader = left[min(left, key=lambda id: (-left[id].low, _place(by_id[id])))]
        tied = [id for id in left if _is_tied(left[id], leader, min_effect)]
        first = min(tied, key=lambda id: (change_size(by_id[id]), -left[id].low, _place(by_id[id])))
        ranked.append(by_id[first])
        del left[first]
    return tuple(ranked)


def _worth(entry: Entry, min_effect: float) -> Estimate | None:
    """How fast it is, if it is worth taking: certainly faster, by enough, nothing against it.

    Duplicates are left out: their original stands for them.
    """
    tried = entry.tried
    if tried is None or entry.duplicate_of is not None or tried.verdict != Verdict.FASTER:
        return None
    if tried.why or tried.estimate is None or tried.estimate.low <= 1.0:
        return None
    return tried.estimate if tried.estimate.ratio >= 1 + min_effect else None


def _is_tied(one: Estimate, leader: Estimate, min_effect: float) -> bool:
    """Whether it can't be told from the leader, or the difference is too small to matter.

    Each one's ratio lies within the other's bounds. That bounds overlap would not be enough: a wide
    interval overlaps with almost any.
    """
    slower, faster = sorted((one.ratio, leader.ratio))
    is_close = faster < slower * (1 + min_effect)
    is_within = leader.low <= one.ratio <= leader.high and one.low <= leader.ratio <= one.high
    return is_close or is_within


def change_size(entry: Entry) -> tuple[int, int]:
    """How large a change is: lines that come or go, then characters.

    The headers of files count as lines, so that touching another file makes it larger.
    """
    diff = entry.tried.diff if entry.tried else ""
    return sum(line.startswith(("+", "-")) for line in diff.splitlines()), len(diff)


def _place(entry: Entry) -> tuple[int, int]:
    return entry.step, entry.line

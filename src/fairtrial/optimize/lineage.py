"""A lineage: a first proposal, the candidates that descend from it, and its next request.

A lineage is a chain of *generations*. The first one is a first proposal, every later one a
refinement of the lineage's best candidate; a candidate that fails may be repaired, several times
over, before its generation is over. The next request of a lineage is a function of the rules and of
its own candidates. It doesn't depend on other lineages, nor on how far they are.

What follows a verdict::

    rejected, with failures or a reason   repair, while repairs are left
    faster, equivalent, slower, passed,   the generation is over; the lineage continues from its
    inconclusive with an estimate         best candidate: this one, if it is the first or gained
                                          `min_effect`
    all others                            the generation is over without a gain

A lineage continues from slower candidates, too: they pass the checks and show the proposer what
doesn't pay, while ending the lineage would leave its share of the budget unused. A candidate that
couldn't be judged (inconclusive, without an estimate) may be wrong, and one that equals the base is
no starting point; a lineage doesn't continue from these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from fairtrial.arena import Verdict
from fairtrial.core import Mistake, StudyError
from fairtrial.optimize.proposals import (
    RequestKind,
    Tried,
    Usage,
    get_worth,
)

BASE = "base"
"""The id that candidates without a change are duplicates of."""
REFINING = (RequestKind.REFINE, RequestKind.ADAPT)
TINY = 1e-9
"""The tolerance for sums of shares."""
UNKNOWN_COST = "nobody knows what its answers cost, and there is a ceiling"
_ONE_OR_MORE = ("lineages", "max_candidates", "batch", "patience")
_ZERO_OR_MORE = (
    *("repairs", "refinements", "min_effect", "max_tokens", "max_cost_usd"),
    *("reply_tokens", "reply_cost_usd"),
)


@dataclass(frozen=True, slots=True)
class LoopRules:
    """The limits of an optimization.

    Budgets are divided among the lineages before the first request. A lineage stays within its own
    share and never gets what another leaves: that would depend on the order in which they finish.

    lineages: how many first proposals there are
    max_candidates: how many candidates there are in all, duplicates not counted
    repairs: how often a failed candidate is repaired
    refinements: how often a lineage is refined
    batch: how many neighboring lineages are refined in one request; 1 for separate requests
    patience: after how many generations without a gain a lineage ends
    min_effect: the smallest gain that counts
    seed: the seed that the seeds of requests are derived from
    kinds: the kinds of requests that the proposer can answer
    max_tokens, max_cost_usd: the most that all replies may take; None for no bound. A lineage ends
        when its share may not be enough for another reply
    reply_tokens, reply_cost_usd: what one reply takes, roughly. There are no more lineages than the
        budget has replies; a lineage that has had a larger reply expects another
    """

    lineages: int = 4
    max_candidates: int = 16
    repairs: int = 2
    refinements: int = 2
    batch: int = 1
    patience: int = 1
    min_effect: float = 0.02
    seed: int = 0
    kinds: frozenset[RequestKind] = frozenset(RequestKind)
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    reply_tokens: float = 0.0
    reply_cost_usd: float = 0.0

    def __post_init__(self) -> None:
        """Raise a `StudyError` with all values that are out of range."""
        least = dict.fromkeys(_ONE_OR_MORE, 1) | dict.fromkeys(_ZERO_OR_MORE, 0)
        mistakes = [
            Mistake((name,), f"expected {bound} or more, got {value}")
            for name, bound in least.items()
            if (value := getattr(self, name)) is not None and not value >= bound
        ]
        if mistakes:
            raise StudyError(mistakes)


@dataclass(frozen=True, slots=True)
class CandidateEntry:
    """A candidate in the tree.

    id: its lineage and step: ``2.1`` is the second candidate of lineage 2
    parent: the id of the candidate that it was made from
    kind: the kind of the request
    lineage: the number of its lineage, from 0
    step: how many candidates its lineage had before it, repairs included
    tried: its judgement as proposers see it; None until it is judged
    duplicate_of: the id of an equal candidate before it, or "base"
    digest: the digest of its normalized change
    name: the proposer's name for it
    diff: its own change against the base, if that is known; a duplicate's may differ from its
        original's in what normalization leaves out
    """

    id: str
    parent: str | None
    kind: RequestKind
    lineage: int
    step: int
    tried: Tried | None = None
    duplicate_of: str | None = None
    digest: str = ""
    name: str = ""
    diff: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """The request that a lineage makes next.

    kind: its kind
    about: the candidate that it is about; None for a first proposal
    is_alone: whether it was part of a request for several lineages before, without a candidate
    """

    kind: RequestKind
    about: CandidateEntry | None = None
    is_alone: bool = False


@dataclass(slots=True, eq=False)
class Lineage:
    """The state of one lineage.

    number: its number, from 0
    candidates: how many candidates it may have
    entries: its candidates, the oldest first; only the last may be without a verdict
    tokens, cost_usd: what its replies took; not a number once a price isn't known
    most_tokens, most_cost_usd: what the largest reply took
    planned: its next request; None while it waits for a reply or a verdict, and at the end
    why_over: why it is over; empty while it isn't
    """

    number: int
    candidates: int
    entries: list[CandidateEntry] = field(default_factory=list)
    tokens: float = 0.0
    cost_usd: float = 0.0
    most_tokens: float = 0.0
    most_cost_usd: float = 0.0
    planned: PlannedRequest | None = None
    why_over: str = ""

    def pay(self, usage: Usage, share: int, expected_tokens: float = 0.0) -> None:
        """Add an equal share of what a reply took.

        share: how many lineages the reply was for
        expected_tokens: the tokens of a reply without a count; not every server counts
        """
        tokens = (usage.tokens or expected_tokens) / share
        cost_usd = float("nan") if usage.cost_usd is None else usage.cost_usd
        self.tokens += tokens
        self.cost_usd += cost_usd / share
        self.most_tokens = max(self.most_tokens, tokens)
        self.most_cost_usd = max(self.most_cost_usd, cost_usd / share)

    def awaits(self, digest: str) -> bool:
        """Return whether it waits for the verdict on this candidate."""
        return any(entry.tried is None and entry.digest == digest for entry in self.entries[-1:])

    def advance(self, rules: LoopRules) -> None:
        """Plan the next request, or end; called once all candidates are judged."""
        planned = plan_request(self, rules)
        if isinstance(planned, PlannedRequest):
            self.planned = planned
        else:
            self.why_over = planned


def plan_request(lineage: Lineage, rules: LoopRules) -> PlannedRequest | str:
    """Return the next request of a lineage, or why it is over."""
    planned = _plan_unbounded(lineage.entries, rules)
    if isinstance(planned, str):
        return planned
    if planned.kind not in rules.kinds:
        return f"the proposer has no answer to requests of kind '{planned.kind.value}'"
    return _find_exhausted_budget(lineage, rules) or planned


def _plan_unbounded(entries: Sequence[CandidateEntry], rules: LoopRules) -> PlannedRequest | str:
    """Return the next request or why the lineage is over, ignoring budgets."""
    if not entries:
        return PlannedRequest(RequestKind.INITIAL)
    repairs = sum(
        1 for _ in takewhile(lambda entry: entry.kind == RequestKind.REPAIR, reversed(entries))
    )
    if repairs < rules.repairs and RequestKind.REPAIR in rules.kinds and can_repair(entries[-1]):
        return PlannedRequest(RequestKind.REPAIR, entries[-1])
    best, stalled = find_best(entries, rules.min_effect)
    refinements = sum(entry.kind in REFINING for entry in entries)
    if best is None:
        return "nothing to continue from"
    if stalled >= rules.patience:
        return "no gain any more"
    if refinements >= rules.refinements:
        return "refined as often as it may be"
    return PlannedRequest(RequestKind.ADAPT if refinements else RequestKind.REFINE, best)


def _find_exhausted_budget(lineage: Lineage, rules: LoopRules) -> str:
    """Return which share of a budget is used up; empty if none is."""
    count = count_lineages(rules)
    if len({entry.digest for entry in lineage.entries} - {""}) >= lineage.candidates:
        return "its share of the candidates is used up"
    if rules.max_tokens is not None:
        wanted = max(rules.reply_tokens, lineage.most_tokens)
        if not _has_room(lineage.tokens, wanted, rules.max_tokens / count):
            return "its share of the tokens is used up"
    if rules.max_cost_usd is not None:
        wanted = max(rules.reply_cost_usd, lineage.most_cost_usd)
        if not _has_room(lineage.cost_usd, wanted, rules.max_cost_usd / count):
            is_known = not math.isnan(lineage.cost_usd)
            return "its share of the money is used up" if is_known else UNKNOWN_COST
    return ""


def _has_room(used: float, wanted: float, share: float) -> bool:
    """Return whether a share is enough for another reply.

    An unknown cost is not a number, which compares as false: nothing more is spent then. Free
    replies fit into any share, also into an empty one.
    """
    is_free = used == wanted == 0
    return is_free or (used < share and used + wanted <= share * (1 + TINY))


def count_lineages(rules: LoopRules) -> int:
    """Return how many lineages there are, such that each can have a candidate and a reply."""
    count = min(rules.lineages, rules.max_candidates)
    for most, reply in (
        (rules.max_tokens, rules.reply_tokens),
        (rules.max_cost_usd, rules.reply_cost_usd),
    ):
        if most is not None and reply > 0:
            count = min(count, int(most * (1 + TINY) / reply))
    return max(count, 1)


def can_repair(entry: CandidateEntry) -> bool:
    """Return whether a candidate failed and its failure can be shown to the proposer.

    An unusable candidate may have no diff; a message alone isn't enough for a repair.
    """
    tried = entry.tried
    if tried is None or tried.verdict != Verdict.REJECTED:
        return False
    return bool(tried.failures) or bool(tried.why.strip() and tried.diff.strip())


def can_refine(entry: CandidateEntry) -> bool:
    """Return whether a lineage can continue from a candidate: it passed, and isn't the base."""
    tried = entry.tried
    if tried is None or not entry.digest or tried.verdict == Verdict.REJECTED:
        return False
    return tried.verdict != Verdict.INCONCLUSIVE or tried.estimate is not None


def find_best(
    entries: Sequence[CandidateEntry], min_effect: float
) -> tuple[CandidateEntry | None, int]:
    """Return the best candidate of a lineage, and how many generations since then had no gain."""
    best, stalled = None, 0
    for entry, following in zip(entries, [*entries[1:], None], strict=True):
        if following is not None and following.kind == RequestKind.REPAIR:
            continue  # the generation isn't over yet
        if can_refine(entry) and (best is None or _gains(entry, best, min_effect)):
            best, stalled = entry, 0
        else:
            stalled += 1
    return best, stalled


def _gains(entry: CandidateEntry, best: CandidateEntry, min_effect: float) -> bool:
    """Return whether a candidate is better than the best before it by `min_effect`."""
    assert entry.tried is not None
    assert best.tried is not None
    return get_worth(entry.tried) >= get_worth(best.tried) * (1 + min_effect)

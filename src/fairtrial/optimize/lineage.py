"""A line of descent: what it has tried, and what it does next.

A line is a chain of *rounds*. The first round is a first proposal, every later one a refinement of
the line's best; a candidate that fails may be repaired, several times over, before its round is
over. What a line does next is a function of the rules and of its own candidates: it never looks at
other lines, so it can't matter how far those are.

Which verdicts lead where::

    rejected, with something to show      repair, while repairs are left
    faster, equivalent, slower, passed,   the round is over; the line goes on from its best, which
    inconclusive with an estimate         this one is if it gained `min_effect` or is the first
    all others                            the round is over and brought no gain

Slower candidates count as well: they hold what the checks ask for and tell a proposer what doesn't
pay, while ending the line would leave its share of the budget unused. One that couldn't be judged
(inconclusive, without an estimate) may be wrong, and one that equals the base is nothing to go on
from.
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
    step_gains as step_gains,
    worth_of,
)

BASE = "base"
"""What a candidate that changes nothing is a duplicate of."""
REFINING = (RequestKind.REFINE, RequestKind.ADAPT)
TINY = 1e-9
"""What sums of shares may be off by."""
UNKNOWN_COST = "nobody knows what its answers cost, and there is a ceiling"
_ONE_OR_MORE = ("lines", "max_candidates", "batch", "patience")
_ZERO_OR_MORE = (
    *("repairs", "refinements", "min_effect", "max_tokens", "max_cost_usd"),
    *("reply_tokens", "reply_cost_usd"),
)


@dataclass(frozen=True, slots=True)
class LoopRules:
    """What an optimisation may do.

    Budgets are shared out by line number before anything is asked for. A line stays within its own
    share and never gets what another leaves: who would get it depends on who comes first.

    lines: how many first proposals there are
    max_candidates: how many candidates there are in all, duplicates not counted
    repairs: how often a failed candidate is repaired
    refinements: how often a line is refined
    batch: how many neighbouring lines are refined in one request; 1 for each by itself
    patience: after how many rounds without a gain a line ends
    min_effect: what counts as a gain
    seed: what seeds of requests are derived from
    kinds: what the proposer can do
    max_tokens, max_cost_usd: what replies may take; None for no bound. A line asks no more if its
        share may not hold another reply
    reply_tokens, reply_cost_usd: what one reply takes, about. There are no more lines than can have
        one; a line that has had a larger one expects another
    """

    lines: int = 4
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
        """Refuse what makes no sense, all of it at once."""
        least = dict.fromkeys(_ONE_OR_MORE, 1) | dict.fromkeys(_ZERO_OR_MORE, 0)
        mistakes = [
            Mistake((name,), f"expected {bound} or more, got {value}")
            for name, bound in least.items()
            if (value := getattr(self, name)) is not None and not value >= bound
        ]
        if mistakes:
            raise StudyError(mistakes)


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate in the tree.

    id: its own, derived from its place: ``2.1`` is the second candidate of line 2
    parent: the id of the one it came of
    kind: what was asked for when it came
    line, step: where in the tree
    tried: what is known of it; None until it is judged
    duplicate_of: the id of an earlier one, or "base", that it equals
    digest: what it is, normalised
    name: what its maker calls it
    diff: its own change against the base, if that was told; a duplicate's may differ from its
        original's in what normalisation leaves out
    """

    id: str
    parent: str | None
    kind: RequestKind
    line: int
    step: int
    tried: Tried | None = None
    duplicate_of: str | None = None
    digest: str = ""
    name: str = ""
    diff: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Move:
    """What a line asks for.

    kind: what
    about: the candidate that it is about; None for something new
    is_alone: whether it was asked for together with others before, without an answer
    """

    kind: RequestKind
    about: Entry | None = None
    is_alone: bool = False


@dataclass(slots=True, eq=False)
class Line:
    """One line, as far as it has come.

    number: its own, from 0
    candidates: how many it may have
    entries: what it has tried, the oldest first; only the last may be without a verdict
    tokens, cost_usd: what that took; not a number once a price isn't known
    most_tokens, most_cost_usd: what the largest reply took
    move: what it wants to ask for; None while it waits for a reply or a verdict, and at the end
    why_over: why it is over; empty while it isn't
    """

    number: int
    candidates: int
    entries: list[Entry] = field(default_factory=list)
    tokens: float = 0.0
    cost_usd: float = 0.0
    most_tokens: float = 0.0
    most_cost_usd: float = 0.0
    move: Move | None = None
    why_over: str = ""

    def pay(self, usage: Usage, share: int, expected_tokens: float = 0.0) -> None:
        """Take one of so many equal shares of what a reply took.

        expected_tokens: what one takes that doesn't say; not every server counts
        """
        tokens = (usage.tokens or expected_tokens) / share
        cost_usd = float("nan") if usage.cost_usd is None else usage.cost_usd
        self.tokens += tokens
        self.cost_usd += cost_usd / share
        self.most_tokens = max(self.most_tokens, tokens)
        self.most_cost_usd = max(self.most_cost_usd, cost_usd / share)

    def awaits(self, digest: str) -> bool:
        """Whether it waits for the verdict on this one."""
        return any(each.tried is None and each.digest == digest for each in self.entries[-1:])

    def advance(self, rules: LoopRules) -> None:
        """Decide what comes next, now that everything it has tried is judged."""
        found = decide(self, rules)
        if isinstance(found, Move):
            self.move = found
        else:
            self.why_over = found


def decide(line: Line, rules: LoopRules) -> Move | str:
    """What a line asks for next, or why it is over."""
    move = _choose(line.entries, rules)
    if isinstance(move, str):
        return move
    if move.kind not in rules.kinds:
        return f"the proposer has no answer to requests of kind '{move.kind.value}'"
    return _find_bound(line, rules) or move


def _choose(entries: Sequence[Entry], rules: LoopRules) -> Move | str:
    """The same without regard to budgets."""
    if not entries:
        return Move(RequestKind.INITIAL)
    repairs = sum(
        1 for _ in takewhile(lambda each: each.kind == RequestKind.REPAIR, reversed(entries))
    )
    if repairs < rules.repairs and RequestKind.REPAIR in rules.kinds and can_repair(entries[-1]):
        return Move(RequestKind.REPAIR, entries[-1])
    best, stalled = find_best(entries, rules.min_effect)
    refinements = sum(each.kind in REFINING for each in entries)
    if best is None:
        return "nothing to go on from"
    if stalled >= rules.patience:
        return "no gain any more"
    if refinements >= rules.refinements:
        return "refined as often as it may be"
    return Move(RequestKind.ADAPT if refinements else RequestKind.REFINE, best)


def _find_bound(line: Line, rules: LoopRules) -> str:
    """Which share of a budget is used up; empty if none is."""
    count = count_lines(rules)
    if len({each.digest for each in line.entries} - {""}) >= line.candidates:
        return "its share of the candidates is used up"
    if rules.max_tokens is not None:
        wanted = max(rules.reply_tokens, line.most_tokens)
        if not _has_room(line.tokens, wanted, rules.max_tokens / count):
            return "its share of the tokens is used up"
    if rules.max_cost_usd is not None:
        wanted = max(rules.reply_cost_usd, line.most_cost_usd)
        if not _has_room(line.cost_usd, wanted, rules.max_cost_usd / count):
            is_known = not math.isnan(line.cost_usd)
            return "its share of the money is used up" if is_known else UNKNOWN_COST
    return ""


def _has_room(used: float, wanted: float, share: float) -> bool:
    """Whether there is room for another reply; if nobody knows, there is none.

    What isn't known compares as false: nobody may spend on without knowing. Who costs nothing has
    room in any share, in none as well.
    """
    is_free = used == wanted == 0
    return is_free or (used < share and used + wanted <= share * (1 + TINY))


def count_lines(rules: LoopRules) -> int:
    """How many lines there are: none without a candidate, and a reply, of its own."""
    count = min(rules.lines, rules.max_candidates)
    for most, each in (
        (rules.max_tokens, rules.reply_tokens),
        (rules.max_cost_usd, rules.reply_cost_usd),
    ):
        if most is not None and each > 0:
            count = min(count, int(most * (1 + TINY) / each))
    return max(count, 1)


def can_repair(entry: Entry) -> bool:
    """Whether it failed and there is something to show: what went wrong, and with what change.

    Of one that is unusable there may be no diff; a message alone leaves nothing to mend.
    """
    tried = entry.tried
    if tried is None or tried.verdict != Verdict.REJECTED:
        return False
    return bool(tried.failures) or bool(tried.why.strip() and tried.diff.strip())


def can_refine(entry: Entry) -> bool:
    """Whether a line can go on from it: it holds what the checks ask for, and isn't the base."""
    tried = entry.tried
    if tried is None or not entry.digest or tried.verdict == Verdict.REJECTED:
        return False
    return tried.verdict != Verdict.INCONCLUSIVE or tried.estimate is not None


def find_best(entries: Sequence[Entry], min_effect: float) -> tuple[Entry | None, int]:
    """The best of a line so far, and how many rounds there were since without a gain."""
    best, stalled = None, 0
    for entry, following in zip(entries, [*entries[1:], None], strict=True):
        if following is not None and following.kind == RequestKind.REPAIR:
            continue  # the round isn't over yet
        if can_refine(entry) and (best is None or _gains(entry, best, min_effect)):
            best, stalled = entry, 0
        else:
            stalled += 1
    return best, stalled


def _gains(entry: Entry, best: Entry, min_effect: float) -> bool:
    """Whether it is better than the best before it by enough."""
    assert entry.tried is not None
    assert best.tried is not None
    return worth_of(entry.tried) >= worth_of(best.tried) * (1 + min_effect)

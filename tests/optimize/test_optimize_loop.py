"""The optimize loop: what it asks for, and that arrival order changes nothing of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from fairtrial.arena import Estimate, Failure, Verdict
from fairtrial.core import StudyError
from fairtrial.optimize import Request, RequestKind, Tried, Usage
from fairtrial.optimize.lineage import BASE, CandidateEntry, LoopRules
from fairtrial.optimize.loop import OptimizeLoop
from fairtrial.optimize.proposals import step_gains
from fairtrial.optimize.selection import rank


def select(entries: Sequence[CandidateEntry], min_effect: float) -> CandidateEntry | None:
    """The best candidate; None if none is worth adopting."""
    return next(iter(rank(entries, min_effect)), None)


FAILED = (Failure("check[0]", "f, case 1", "3 instead of 4"),)


def tried(verdict: Verdict, ratio: float | None = None, **more: object) -> Tried:
    """What judging came to; bounds are 5 % either side."""
    estimate = ratio and Estimate(ratio, ratio * 0.95, ratio * 1.05, 10, 0.95)
    return replace(Tried("?", "?", "+x\n", verdict, estimate=estimate or None), **more)  # type: ignore[arg-type]


PASSED = tried(Verdict.PASSED)
WRONG = tried(Verdict.REJECTED, failures=FAILED, why="different results")


# -- a world of replies and verdicts --

MOST_TOKENS, MOST_USD = 90, 0.7


@dataclass(frozen=True)
class World:
    """A proposer and a judge: functions of a request's key and of a digest, nothing else.

    digests: how many different candidates there are; with few of them, there are many duplicates
    refusals: how often there is no candidate
    """

    salt: int
    digests: int = 12
    refusals: float = 0.1

    def answer(self, request: Request) -> tuple[list[str | None], list[str], Usage]:
        draw = random.Random(f"{self.salt}/{request.key}")
        digests = [
            None if draw.random() < self.refusals else f"{draw.randint(0, self.digests) or ''}"
            for _ in range(0 if draw.random() < self.refusals else request.wanted)
        ]
        diffs = ["+x\n" * draw.randint(0, 3) for _ in digests]
        cost_usd = draw.choice([0.1, 0.2, MOST_USD, None])
        return digests, diffs, Usage(prompt_tokens=draw.randint(0, MOST_TOKENS), cost_usd=cost_usd)

    def verdict(self, digest: str) -> Tried:
        draw = random.Random(f"{self.salt}/{digest}")
        ratio = draw.choice([0.7, 1.0, 1.01, 1.3, 1.31, 2.0, 5.0])
        return draw.choice(
            [
                WRONG,
                WRONG,
                tried(Verdict.REJECTED, why="timeout"),
                tried(Verdict.REJECTED),
                tried(Verdict.INCONCLUSIVE),
                tried(Verdict.INCONCLUSIVE, ratio),
                PASSED,
                tried(Verdict.SLOWER, 0.8),
                tried(Verdict.EQUIVALENT, 1.0),
                tried(Verdict.FASTER, ratio),
                tried(Verdict.FASTER, ratio),
                tried(Verdict.FASTER, ratio, why="twice the memory"),
            ]
        )


@dataclass
class Play:
    """A loop in a world: whatever is under way comes back in any order, so much at once."""

    loop: OptimizeLoop
    world: World
    draw: random.Random = field(default_factory=lambda: random.Random(0))
    at_once: int = 1
    requests: list[Request] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    replies: dict[str, tuple[list[str | None], list[str], Usage]] = field(default_factory=dict)
    verdicts: dict[str, Tried] = field(default_factory=dict)
    open: list[Request] = field(default_factory=list)
    unjudged: list[CandidateEntry] = field(default_factory=list)

    def ask(self) -> None:
        asked = self.loop.next_requests()
        self.requests += asked
        self.open += asked

    def step(self) -> bool:
        """One thing happens; False if there is nothing under way."""
        if self.draw.random() < 0.7 or not (self.open or self.unjudged):
            self.ask()
        under_way: list[Request | CandidateEntry] = [
            *self.open[: self.at_once],
            *self.unjudged[: self.at_once],
        ]
        if not under_way:
            return False
        chosen = self.draw.choice(under_way)
        if isinstance(chosen, Request):
            self.deliver(chosen)
        else:
            self.settle(chosen)
        return True

    def deliver(self, request: Request) -> None:
        self.open.remove(request)
        digests, diffs, usage = self.replies[request.key] = self.world.answer(request)
        self.enter(self.loop.reply(request, digests, diffs, usage))

    def enter(self, entries: Sequence[CandidateEntry]) -> None:
        self.unjudged += [entry for entry in entries if entry.duplicate_of is None]

    def settle(self, entry: CandidateEntry) -> None:
        self.unjudged.remove(entry)
        self.judged.append(entry.digest)
        self.verdicts[entry.digest] = self.world.verdict(entry.digest)
        # As an arena would: with the name and the diff of the one that it has seen.
        told = replace(self.verdicts[entry.digest], name=f"the {entry.id}", diff=entry.diff or "")
        self.loop.judge(entry.id, told)

    def to_the_end(self) -> Play:
        for _ in range(10_000):
            if not self.step():
                assert self.loop.is_over
                return self
        raise AssertionError("it doesn't end")

    def outcome(self) -> tuple[object, ...]:
        loop = self.loop
        requests = {request.key: request for request in self.requests}
        return requests, loop.entries, rank(loop.entries, loop.rules.min_effect), loop.why_over


ALL_KINDS = st.just(frozenset(RequestKind))
RULES = st.builds(
    LoopRules,
    lineages=st.integers(1, 6),
    max_candidates=st.integers(1, 40),
    repairs=st.integers(0, 3),
    refinements=st.integers(0, 4),
    batch=st.integers(1, 4),
    patience=st.integers(1, 3),
    seed=st.integers(0, 3),
    kinds=st.one_of(*[ALL_KINDS] * 5, st.frozensets(st.sampled_from(RequestKind))),
    max_tokens=st.one_of(*[st.none()] * 5, st.integers(0, 900)),
    max_cost_usd=st.one_of(*[st.none()] * 5, st.floats(0, 5)),
)
WORLDS = st.builds(
    World, st.integers(0, 10**6), st.sampled_from([1, 4, 12, 1000]), st.sampled_from([0.0, 0.15])
)
ORDERS = st.integers(0, 10**6).map(random.Random)
AT_ONCE = st.sampled_from([1, 2, 8])


# -- what holds whatever happens --


@settings(max_examples=250)
@given(RULES, WORLDS, ORDERS, ORDERS, AT_ONCE)
def test_arrival_order_changes_nothing(
    rules: LoopRules,
    world: World,
    order: random.Random,
    other: random.Random,
    at_once: int,
) -> None:
    alone = Play(OptimizeLoop(rules), world).to_the_end()
    first = Play(OptimizeLoop(rules), world, order, at_once).to_the_end()
    second = Play(OptimizeLoop(rules), world, other, 8).to_the_end()
    assert alone.outcome() == first.outcome() == second.outcome()


@settings(max_examples=150)
@given(RULES, WORLDS, ORDERS, AT_ONCE)
def test_budgets_and_bounds_hold(
    rules: LoopRules, world: World, order: random.Random, at_once: int
) -> None:
    play = Play(OptimizeLoop(rules), world, order, at_once).to_the_end()
    entries = play.loop.entries
    assert len(play.judged) == len(set(play.judged)) <= rules.max_candidates
    assert set(play.judged) == {entry.digest for entry in entries} - {""}
    keys = Counter(request.key for request in play.requests)
    assert set(keys.values()) <= {1}
    assert {request.kind for request in play.requests} <= rules.kinds
    for number in range(rules.lineages):
        line = [entry for entry in entries if entry.lineage == number]
        kinds = "".join(entry.kind.value[2] for entry in line)  # i, p, f, a
        assert "p" * (rules.repairs + 1) not in kinds
        assert kinds.count("f") <= 1
        assert kinds.count("f") + kinds.count("a") <= rules.refinements
        assert "f" in kinds or "a" not in kinds
        assert [entry.id for entry in line] == [f"{number}.{step}" for step in range(len(line))]


@settings(max_examples=150)
@given(RULES, WORLDS, ORDERS, AT_ONCE)
def test_the_tree_holds_together(
    rules: LoopRules, world: World, order: random.Random, at_once: int
) -> None:
    play = Play(OptimizeLoop(rules), world, order, at_once).to_the_end()
    entries = {entry.id: entry for entry in play.loop.entries}
    for entry in entries.values():
        assert entry.tried is not None
        assert entry.tried.name == entry.id
        assert entry.tried.digest == entry.digest
        if entry.digest:
            assert entry.tried.verdict == play.verdicts[entry.digest].verdict
        assert (entry.duplicate_of == BASE) == (entry.digest == "")
        if entry.duplicate_of not in (None, BASE):
            original = entries[entry.duplicate_of]
            assert original.duplicate_of is None
            assert original.digest == entry.digest
            assert (original.step, original.lineage) < (entry.step, entry.lineage)
        assert (entry.parent is None) == (entry.kind == RequestKind.INITIAL)
        if entry.parent is not None:
            parent = entries[entry.parent].tried
            assert parent is not None
            assert (parent.verdict == Verdict.REJECTED) == (entry.kind == RequestKind.REPAIR)
            assert entries[entry.parent].lineage == entry.lineage
    originals = [entry.digest for entry in entries.values() if entry.duplicate_of is None]
    assert len(originals) == len(set(originals))


@settings(max_examples=150)
@given(RULES, WORLDS, ORDERS, AT_ONCE, st.integers(0, 60), st.booleans())
def test_stopping_at_any_moment_ends_cleanly(
    rules: LoopRules, world: World, order: random.Random, at_once: int, after: int, withdraw: bool
) -> None:
    play = Play(OptimizeLoop(rules), world, order, at_once)
    for _ in range(after):
        play.step()
    was_over = play.loop.is_over
    asked = len(play.requests)
    play.loop.stop("time is up")
    play.loop.stop("another reason")
    if withdraw:
        for request in play.open:
            assert play.loop.reply(request, ()) == []
        play.open.clear()
    play.to_the_end()
    assert len(play.requests) == asked  # none after it
    assert play.loop.why_over == "time is up" or was_over
    # What was paid for is there, and judged.
    answered = [digest for digests, *_ in play.replies.values() for digest in digests]
    entered = Counter(entry.digest for entry in play.loop.entries)
    assert entered == Counter(digest for digest in answered if digest is not None)
    assert all(entry.tried is not None for entry in play.loop.entries)


@settings(max_examples=150)
@given(RULES, WORLDS, ORDERS, ORDERS, AT_ONCE, st.integers(0, 60))
def test_recorded_replies_and_verdicts_lead_to_the_same_state(
    rules: LoopRules,
    world: World,
    order: random.Random,
    other: random.Random,
    at_once: int,
    after: int,
) -> None:
    before = Play(OptimizeLoop(rules), world, order, at_once)
    for _ in range(after):
        before.step()
    before.ask()
    again = Play(OptimizeLoop(rules), world, other, at_once)
    while True:
        again.ask()
        known: list[Request | CandidateEntry] = [
            each for each in again.open if each.key in before.replies
        ]
        known += [each for each in again.unjudged if each.digest in before.verdicts]
        if not known:
            break
        chosen = other.choice(known)
        if isinstance(chosen, Request):
            again.deliver(chosen)
        else:
            again.settle(chosen)
    assert again.loop.entries == before.loop.entries
    assert {each.key: each for each in again.open} == {each.key: each for each in before.open}
    assert {each.digest for each in again.unjudged} == {each.digest for each in before.unjudged}
    assert again.loop.is_over == before.loop.is_over
    assert again.to_the_end().outcome() == before.to_the_end().outcome()


# -- what leads where --


def start(**rules: object) -> OptimizeLoop:
    return OptimizeLoop(LoopRules(**{"lineages": 1, **rules}))  # type: ignore[arg-type]


def only(requests: Sequence[Request]) -> Request:
    assert len(requests) == 1
    return requests[0]


def go(loop: OptimizeLoop, digest: str, verdict: Tried, kind: RequestKind) -> Request:
    """The only request there is gets a candidate, and that its verdict."""
    request = only(loop.next_requests())
    assert request.kind == kind
    (entry,) = loop.reply(request, [digest])
    loop.judge(entry.id, verdict)
    return request


def test_first_proposals_are_replicates_with_seeds_of_their_own() -> None:
    requests = start(lineages=3, seed=7).next_requests()
    assert [(each.lineage, each.step, each.replicate) for each in requests] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 0, 2),
    ]
    assert all(each.kind == RequestKind.INITIAL and not each.about for each in requests)
    assert len({each.seed for each in requests}) == 3
    assert [each.seed for each in start(lineages=3, seed=8).next_requests()] != [
        each.seed for each in requests
    ]
    assert max(each.seed for each in requests) < 2**32


def test_a_failure_is_repaired_so_often_and_no_more() -> None:
    loop = start(repairs=2)
    go(loop, "a", WRONG, RequestKind.INITIAL)
    request = go(loop, "b", WRONG, RequestKind.REPAIR)
    assert request.about == (replace(WRONG, name="0.0", digest="a"),)
    request = go(loop, "c", WRONG, RequestKind.REPAIR)
    assert [each.name for each in request.about] == ["0.1"]
    assert [each.name for each in request.history] == ["0.0", "0.1"]
    assert loop.is_over
    assert loop.why_over == "1 lineage: nothing to continue from"
    assert [entry.parent for entry in loop.entries] == [None, "0.0", "0.1"]


@pytest.mark.parametrize(
    ("verdict", "is_repaired"),
    [
        (tried(Verdict.REJECTED, failures=FAILED, diff=""), True),
        (tried(Verdict.REJECTED, why="timeout"), True),
        (tried(Verdict.REJECTED, why="unusable", diff=""), False),
        (tried(Verdict.REJECTED), False),
        (tried(Verdict.INCONCLUSIVE, why="it could not be judged"), False),
    ],
)
def test_only_failures_that_can_be_shown_are_repaired(verdict: Tried, is_repaired: bool) -> None:
    loop = start()
    go(loop, "a", verdict, RequestKind.INITIAL)
    assert [each.kind for each in loop.next_requests()] == [RequestKind.REPAIR] * is_repaired
    assert loop.is_over != is_repaired


@pytest.mark.parametrize(
    "verdict",
    [
        PASSED,
        tried(Verdict.FASTER, 2.0),
        tried(Verdict.FASTER, 2.0, why="twice the memory"),
        tried(Verdict.EQUIVALENT, 1.0),
        tried(Verdict.SLOWER, 0.5),
        tried(Verdict.INCONCLUSIVE, 1.1),
    ],
)
def test_candidates_that_pass_are_refined(verdict: Tried) -> None:
    loop = start()
    go(loop, "a", verdict, RequestKind.INITIAL)
    request = only(loop.next_requests())
    assert request.kind == RequestKind.REFINE
    assert request.about == (replace(verdict, name="0.0", digest="a"),)


def test_later_rounds_adapt_with_the_history_of_the_line() -> None:
    loop = start(refinements=3)
    go(loop, "a", tried(Verdict.FASTER, 1.2), RequestKind.INITIAL)
    go(loop, "b", WRONG, RequestKind.REFINE)
    go(loop, "c", tried(Verdict.FASTER, 1.5), RequestKind.REPAIR)
    request = go(loop, "d", tried(Verdict.FASTER, 3.0), RequestKind.ADAPT)
    assert [each.name for each in request.about] == ["0.2"]
    assert [each.digest for each in request.history] == ["a", "b", "c"]
    assert step_gains(request.history) == (1.2, None, 1.5 / 1.2)
    go(loop, "e", tried(Verdict.FASTER, 9.0), RequestKind.ADAPT)
    assert loop.next_requests() == []
    assert loop.why_over == "1 lineage: refined as often as it may be"


def test_a_lineage_continues_from_its_best_until_patience_runs_out() -> None:
    loop = start(refinements=9, patience=2)
    go(loop, "a", tried(Verdict.FASTER, 1.5), RequestKind.INITIAL)
    go(loop, "b", tried(Verdict.FASTER, 1.52), RequestKind.REFINE)  # below min_effect: no gain
    request = go(loop, "c", tried(Verdict.FASTER, 1.6), RequestKind.ADAPT)
    assert [each.digest for each in request.about] == ["a"]
    request = go(loop, "d", tried(Verdict.SLOWER, 0.5), RequestKind.ADAPT)
    assert [each.digest for each in request.about] == ["c"]
    request = go(loop, "e", tried(Verdict.REJECTED), RequestKind.ADAPT)
    assert [each.digest for each in request.about] == ["c"]
    assert loop.why_over == "1 lineage: no gain any more"


def test_a_gain_that_something_speaks_against_is_none() -> None:
    loop = start(refinements=9, patience=2)
    go(loop, "a", tried(Verdict.FASTER, 9.0, why="twice the memory"), RequestKind.INITIAL)
    go(loop, "b", tried(Verdict.SLOWER, 0.5), RequestKind.REFINE)
    request = go(loop, "c", tried(Verdict.FASTER, 1.2), RequestKind.ADAPT)
    assert [each.digest for each in request.about] == ["a"]
    request = only(loop.next_requests())
    assert [each.digest for each in request.about] == ["c"]
    assert step_gains(request.history) == (9.0, 0.5, 1.2)


@pytest.mark.parametrize("digests", [[], [None]])
def test_a_refusal_ends_its_line(digests: list[None]) -> None:
    loop = start(lineages=2)
    first, second = loop.next_requests()
    assert loop.reply(first, digests) == []
    assert not loop.is_over
    loop.reply(second, digests)
    assert loop.why_over == "2 lineages: the proposer has nothing to propose"


def test_the_reason_for_an_empty_reply_is_reported() -> None:
    loop = start(lineages=2)
    first, second = loop.next_requests()
    loop.reply(first, [], why_none="it raised ValueError")
    loop.reply(second, [None])
    told = "1 lineage: it raised ValueError; 1 lineage: the proposer has nothing to propose"
    assert loop.why_over == told


def test_a_line_ends_where_the_proposer_has_no_answer() -> None:
    loop = start(kinds=frozenset({RequestKind.INITIAL, RequestKind.REPAIR, RequestKind.REFINE}))
    go(loop, "a", PASSED, RequestKind.INITIAL)
    go(loop, "b", tried(Verdict.FASTER, 2.0), RequestKind.REFINE)
    assert loop.why_over == "1 lineage: the proposer has no answer to requests of kind 'adapt'"


def test_without_repairs_a_failed_refinement_is_a_round_without_gain() -> None:
    loop = start(kinds=frozenset(RequestKind) - {RequestKind.REPAIR}, patience=2)
    go(loop, "a", PASSED, RequestKind.INITIAL)
    go(loop, "b", WRONG, RequestKind.REFINE)
    assert [each.digest for each in only(loop.next_requests()).about] == ["a"]


class Obliging(World):
    """Always has something new, and all of it passes."""

    def answer(self, request: Request) -> tuple[list[str | None], list[str], Usage]:
        return [f"{request.key}/{place}" for place in range(request.wanted)], [], Usage()

    def verdict(self, digest: str) -> Tried:
        return PASSED


@pytest.mark.parametrize("batch", [1, 2])
def test_candidates_are_shared_out_by_line(batch: int) -> None:
    rules = LoopRules(lineages=3, max_candidates=8, refinements=99, patience=99, batch=batch)
    play = Play(OptimizeLoop(rules), Obliging(0)).to_the_end()
    assert Counter(entry.lineage for entry in play.loop.entries) == {0: 3, 1: 3, 2: 2}
    assert play.loop.why_over == "3 lineages: their share of the candidates is used up"
    assert len(OptimizeLoop(LoopRules(lineages=9, max_candidates=2)).next_requests()) == 2


def test_a_duplicate_in_its_own_line_costs_no_share() -> None:
    loop = start(max_candidates=2, refinements=9, patience=9)
    go(loop, "a", PASSED, RequestKind.INITIAL)
    (same,) = loop.reply(only(loop.next_requests()), ["a"])
    assert same.duplicate_of == "0.0"
    (base,) = loop.reply(only(loop.next_requests()), [""])
    assert base.duplicate_of == BASE
    assert base.tried is not None
    go(loop, "b", PASSED, RequestKind.ADAPT)
    assert loop.why_over == "1 lineage: its share of the candidates is used up"


def test_a_first_proposal_that_equals_the_base_is_nothing_to_continue_from() -> None:
    loop = start()
    loop.reply(only(loop.next_requests()), [""])
    assert loop.why_over == "1 lineage: nothing to continue from"


def test_an_equal_candidate_waits_for_the_one_that_is_being_judged() -> None:
    loop = start(lineages=2)
    first, second = loop.next_requests()
    (judged,) = loop.reply(second, ["a"], ["+long\n+er\n"])
    (waits,) = loop.reply(first, ["a"], ["+short\n"])
    assert waits.duplicate_of == judged.id == "1.0"
    assert waits.tried is None
    assert loop.next_requests() == []
    loop.judge("1.0", tried(Verdict.FASTER, 2.0))
    requests = loop.next_requests()
    assert [each.about[0].diff for each in requests] == ["+short\n", "+long\n+er\n"]
    assert len({each.key for each in requests}) == 2
    # In the tree it is the first that is the original, whoever was judged.
    assert [entry.duplicate_of for entry in loop.entries] == [None, "0.0"]
    assert select(loop.entries, 0.02) == loop.entries[0]


def test_neighbors_are_refined_together_once_all_are_ready() -> None:
    loop = start(lineages=5, batch=2)
    requests = loop.next_requests()
    for request, digest in zip(requests, "abcde", strict=True):
        loop.reply(request, [digest])
    loop.judge("4.0", PASSED)  # alone in its batch
    assert [each.lineage for each in loop.next_requests()] == [4]
    loop.judge("1.0", PASSED)
    loop.judge("2.0", PASSED)
    assert loop.next_requests() == []
    loop.judge("3.0", tried(Verdict.REJECTED))  # ends its line: nobody to wait for
    assert [(each.lineage, each.wanted) for each in loop.next_requests()] == [(2, 1)]
    loop.judge("0.0", WRONG)
    repair = only(loop.next_requests())
    assert repair.kind == RequestKind.REPAIR
    loop.reply(repair, ["f"])
    loop.judge("0.1", PASSED)
    both = only(loop.next_requests())
    assert (both.kind, both.lineage, both.step, both.wanted) == (RequestKind.REFINE, 0, 2, 2)
    assert [each.name for each in both.about] == ["0.1", "1.0"]
    entered = loop.reply(both, [None, "g"])
    assert [(entry.id, entry.parent) for entry in entered] == [("1.1", "1.0")]


@pytest.mark.parametrize("digests", [[], [None, "g"]])
def test_a_lineage_without_a_candidate_in_a_batch_gets_one_separate_request(
    digests: list[str | None],
) -> None:
    loop = start(lineages=2, batch=2)
    for request, digest in zip(loop.next_requests(), "ab", strict=True):
        loop.reply(request, [digest])
    loop.judge("0.0", PASSED)
    loop.judge("1.0", PASSED)
    loop.reply(only(loop.next_requests()), digests)
    alone = loop.next_requests()
    left = [0] if digests else [0, 1]
    assert [(each.kind, each.lineage, each.wanted) for each in alone] == [
        (RequestKind.REFINE, line, 1) for line in left
    ]
    assert [each.name for each in alone[0].about] == ["0.0"]
    for request in alone:
        loop.reply(request, [None])
    assert loop.next_requests() == []
    if digests:
        loop.judge("1.1", tried(Verdict.REJECTED))
    assert loop.is_over


def test_no_separate_request_is_made_after_a_stop() -> None:
    loop = start(lineages=2, batch=2)
    for request, digest in zip(loop.next_requests(), "ab", strict=True):
        loop.reply(request, [digest])
    loop.judge("0.0", PASSED)
    loop.judge("1.0", PASSED)
    both = only(loop.next_requests())
    loop.stop("enough")
    loop.reply(both, [])
    assert (loop.next_requests(), loop.why_over) == ([], "enough")


def test_tokens_and_money_are_shared_out_by_line() -> None:
    loop = start(lineages=2, max_tokens=100)
    first, second = loop.next_requests()
    loop.reply(first, ["a"], usage=Usage(prompt_tokens=6, completion_tokens=20))
    loop.reply(second, ["b"], usage=Usage(prompt_tokens=25))
    loop.judge("0.0", PASSED)
    loop.judge("1.0", PASSED)
    assert [each.lineage for each in loop.next_requests()] == [1]
    for cost_usd, goes_on in [(0.25, True), (0.26, False), (0.5, False), (None, False)]:
        loop = start(max_cost_usd=0.5)
        loop.reply(only(loop.next_requests()), ["a"], usage=Usage(cost_usd=cost_usd))
        loop.judge("0.0", PASSED)
        assert bool(loop.next_requests()) == goes_on
        unknown = "nobody knows what its answers cost, and there is a ceiling"
        used_up = unknown if cost_usd is None else "its share of the money is used up"
        assert goes_on or loop.why_over == f"1 lineage: {used_up}"


def test_an_answer_that_nobody_counted_takes_as_many_tokens_as_one_was_expected_to() -> None:
    for usage, goes_on in [(Usage(), False), (Usage(prompt_tokens=1), True)]:
        loop = start(max_tokens=100, reply_tokens=60)
        loop.reply(only(loop.next_requests()), ["a"], usage=usage)
        loop.judge("0.0", PASSED)
        assert bool(loop.next_requests()) == goes_on


@settings(max_examples=150)
@given(RULES, WORLDS, ORDERS, st.integers(0, 900), st.floats(0, 5))
def test_a_ceiling_holds_if_no_answer_exceeds_its_estimate(
    rules: LoopRules, world: World, order: random.Random, max_tokens: int, max_cost_usd: float
) -> None:
    """N lines that look at the budget at once overshoot it N-fold."""
    rules = replace(rules, max_tokens=max_tokens, max_cost_usd=max_cost_usd)
    rules = replace(rules, reply_tokens=MOST_TOKENS, reply_cost_usd=MOST_USD)
    play = Play(OptimizeLoop(rules), world, order, 8).to_the_end()
    usages = [usage for *_, usage in play.replies.values()]
    assert sum(usage.tokens for usage in usages) <= max_tokens
    assert sum(usage.cost_usd or 0.0 for usage in usages) <= max_cost_usd * (1 + 1e-6)


def test_free_replies_fit_into_an_empty_budget() -> None:
    for usage, goes_on in [(Usage(cost_usd=0.0), True), (Usage(cost_usd=0.01), False)]:
        loop = start(max_cost_usd=0.0, max_tokens=0)
        loop.reply(only(loop.next_requests()), ["a"], usage=usage)
        loop.judge("0.0", PASSED)
        assert bool(loop.next_requests()) == goes_on
    assert start(max_cost_usd=0.0, reply_cost_usd=0.01).next_requests() == []


def test_no_more_lines_are_begun_than_can_be_paid_for() -> None:
    loop = start(lineages=8, max_cost_usd=0.35, reply_cost_usd=0.1)
    assert len(loop.next_requests()) == 3
    assert start(lineages=8, max_cost_usd=0.05, reply_cost_usd=0.1).next_requests() == []
    assert len(start(lineages=8, max_tokens=500, reply_tokens=100).next_requests()) == 5


def test_a_reply_without_a_request_is_refused() -> None:
    loop = start()
    request = only(loop.next_requests())
    with pytest.raises(ValueError, match="asked for 1, got 2"):
        loop.reply(request, ["a", "b"])
    with pytest.raises(ValueError, match=r"no verdict on 0\.0 is expected"):
        loop.judge("0.0", PASSED)
    loop.reply(request, ["a"])
    with pytest.raises(ValueError, match="no reply to initial/line 0"):
        loop.reply(request, ["a"])
    loop.judge("0.0", PASSED)
    with pytest.raises(ValueError, match=r"no verdict on 0\.0 is expected"):
        loop.judge("0.0", PASSED)
    with pytest.raises(ValueError, match="no verdict on base is expected"):
        loop.judge(BASE, PASSED)


def test_rules_that_make_no_sense_are_refused_all_at_once() -> None:
    with pytest.raises(StudyError) as caught:
        LoopRules(lineages=0, repairs=-1, batch=0, max_cost_usd=float("nan"))
    assert [mistake.path for mistake in caught.value.mistakes] == [
        ("lineages",),
        ("batch",),
        ("repairs",),
        ("max_cost_usd",),
    ]
    assert "lineages: expected 1 or more, got 0" in str(caught.value)


# -- who is the best --


def entry(
    id: str, verdict: Tried, lines: int = 1, duplicate_of: str | None = None
) -> CandidateEntry:
    lineage, step = map(int, id.split("."))
    judged = replace(verdict, diff="+x\n" * lines)
    return CandidateEntry(id, None, RequestKind.INITIAL, lineage, step, judged, duplicate_of, id)


def faster(ratio: float, low: float, high: float, why: str = "") -> Tried:
    return replace(tried(Verdict.FASTER, why=why), estimate=Estimate(ratio, low, high, 10, 0.95))


def test_the_best_has_the_highest_lower_bound() -> None:
    sure = entry("0.0", faster(1.8, 1.7, 1.9), lines=50)
    wide = entry("1.0", faster(1.75, 1.1, 2.8), lines=90)
    slow = entry("2.0", faster(1.2, 1.1, 1.3))
    assert rank([slow, wide, sure], 0.02) == (sure, wide, slow)


def test_among_those_that_cannot_be_distinguished_the_smaller_change_is_best() -> None:
    large = entry("0.0", faster(1.5, 1.4, 1.6), lines=9)
    small = entry("1.0", faster(1.45, 1.35, 1.55), lines=2)
    assert rank([large, small], 0.02) == (small, large)
    # Bounds that only overlap are no tie: the ratios lie outside of each other's.
    apart = entry("2.0", faster(1.2, 1.05, 1.45), lines=1)
    assert rank([large, apart], 0.02) == (large, apart)
    # Nor is one that may be far faster, and may be hardly faster at all.
    wild = entry("5.0", faster(78.0, 1.2, 3284.0), lines=1)
    assert rank([large, wild], 0.02) == (large, wild)
    # Sure to be different, and by too little to matter.
    close = entry("3.0", faster(1.48, 1.479, 1.481), lines=1)
    sure = entry("4.0", faster(1.5, 1.499, 1.501), lines=2)
    assert rank([sure, close], 0.02) == (close, sure)
    assert rank([sure, close], 0.001) == (sure, close)


@pytest.mark.parametrize(
    "out",
    [
        PASSED,
        WRONG,
        tried(Verdict.EQUIVALENT, 1.5),
        faster(1.5, 1.4, 1.6, why="twice the memory"),
        faster(1.01, 1.005, 1.015),
        faster(1.5, 1.0, 2.0),
        tried(Verdict.FASTER),
    ],
)
def test_candidates_that_are_not_worth_adopting_are_not_ranked(out: Tried) -> None:
    assert select([entry("0.0", out)], 0.02) is None


def test_duplicates_and_those_without_verdict_are_not_ranked() -> None:
    first = entry("0.0", faster(1.5, 1.4, 1.6), lines=5)
    again = entry("1.0", faster(1.5, 1.4, 1.6), lines=1, duplicate_of="0.0")
    waiting = replace(first, id="2.0", tried=None)
    assert rank([waiting, again, first], 0.02) == (first,)


RATIOS = st.floats(1.0, 3.0)


@settings(max_examples=150)
@given(st.lists(st.tuples(RATIOS, RATIOS, RATIOS, st.integers(1, 3)), max_size=8), ORDERS)
def test_ranking_is_independent_of_order_and_complete(
    figures: list[tuple[float, float, float, int]], order: random.Random
) -> None:
    entries = []
    for number, (*bounds, lines) in enumerate(figures):
        low, ratio, high = sorted(bounds)
        entries.append(entry(f"{number}.0", faster(ratio, low, high), lines))
    ranked = rank(entries, 0.02)
    shuffled = order.sample(entries, len(entries))
    assert rank(shuffled, 0.02) == ranked
    worthy = {
        each.id
        for each in entries
        if each.tried and each.tried.estimate
        if each.tried.estimate.low > 1 and each.tried.estimate.ratio >= 1.02
    }
    assert {each.id for each in ranked} == worthy
    assert len(ranked) == len(worthy)
    # Nobody stands behind one that is certainly slower, by as much as matters.
    estimates = [each.tried.estimate for each in ranked if each.tried and each.tried.estimate]
    assert all(one.high * 1.02 >= other.low for one, other in pairwise(estimates))

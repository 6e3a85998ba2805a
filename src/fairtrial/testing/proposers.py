"""What every proposer must do, as tests: make a subclass, and let pytest find it.

::

    from fairtrial.testing.proposers import ProposerConformance

    class TestMine(ProposerConformance):
        @pytest.fixture
        def proposer(self):
            return Mine()

Override `brief` if the proposer needs other files, and `workshop` if it uses more of an arena than
its folder and its lock. Needs pytest; with
``pytest.register_assert_rewrite("fairtrial.testing.proposers")`` in a `conftest.py` failures tell
more.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fairtrial import Brief, Proposer, Reply, Request
from fairtrial.core import Record, build_record, dump_record
from fairtrial.optimize import PreflightContext, RequestKind, Usage, replies
from fairtrial.sandbox import HostLock

T = TypeVar("T")
FIRST = Request(RequestKind.INITIAL, 0, 0, seed=1)
SLOW = """\
def unique(items):
    kept = []
    for item in items:
        if item not in kept:
            kept.append(item)
    return kept
"""


@dataclass(frozen=True, slots=True)
class FolderWorkshop:
    """A workshop without an arena: enough for proposers that run no commands.

    folder: where relative paths in options start
    lock: the host lock
    """

    folder: Path
    lock: HostLock

    @property
    def project(self) -> Path:
        """The project's folder."""
        return self.folder


class ProposerConformance:
    """The tests."""

    @pytest.fixture
    def proposer(self) -> Proposer:
        """The proposer to be tried."""
        raise NotImplementedError

    @pytest.fixture
    def brief(self) -> Brief:
        """What requests are about."""
        return Brief("unique", "Make it faster.", {"src/unique.py": SLOW})

    @pytest.fixture
    def workshop(self, tmp_path: Path) -> Any:
        """Where the proposer is opened."""
        return FolderWorkshop(tmp_path, HostLock(tmp_path))

    @pytest.fixture
    def use(self, proposer: Proposer, workshop: Any) -> Callable[..., Any]:
        """Return a function that calls another with the opened proposer, and closes it."""

        def use(work: Callable[[Proposer], Awaitable[T]]) -> T:
            import anyio

            async def run() -> T:
                opened = await proposer.open(workshop)
                try:
                    return await work(opened)
                finally:
                    await opened.close()

            return anyio.run(run)

        return use

    # -- what it says of itself --

    def test_a_proposer_derives_from_the_base_class(self, proposer: Proposer) -> None:
        assert isinstance(proposer, Proposer)
        assert proposer.name
        assert isinstance(proposer.name, str)

    def test_a_proposer_states_how_many_requests_it_takes_at_once(self, proposer: Proposer) -> None:
        assert proposer.most_at_once >= 1
        assert isinstance(proposer.can_batch, bool)

    def test_a_proposer_states_which_kinds_of_requests_it_answers(self, proposer: Proposer) -> None:
        assert {type(proposer.can(kind)) for kind in RequestKind} == {bool}
        assert proposer.can(RequestKind.INITIAL)

    def test_options_of_a_proposer_survive_a_round_trip(self, proposer: Proposer) -> None:
        assert is_dataclass(proposer)
        if not isinstance(proposer, Record):
            pytest.skip("its options aren't checked")
        mistakes: list[Any] = []
        again = build_record(
            type(proposer), json.loads(json.dumps(dump_record(proposer))), (), mistakes
        )
        assert (mistakes, again) == ([], proposer)

    def test_incidental_options_are_options_of_the_proposer(self, proposer: Proposer) -> None:
        assert is_dataclass(proposer)
        assert proposer.incidental_options <= {option.name for option in fields(proposer)}

    # -- before it starts --

    def test_a_preflight_without_a_problem_finds_nothing_wrong(self, proposer: Proposer) -> None:
        for may_import in (True, False):
            proposer.preflight(PreflightContext(may_import=may_import))

    def test_a_preflight_can_be_repeated(self, proposer: Proposer, workshop: Any) -> None:
        for _ in range(2):
            proposer.preflight(PreflightContext(workshop.folder, workshop.project))

    def test_a_proposer_estimates_the_usage_of_a_reply(
        self, use: Callable[..., Any], brief: Brief
    ) -> None:
        async def estimate(opened: Proposer) -> Usage:
            return opened.estimate(brief)

        usage = use(estimate)
        assert isinstance(usage, Usage)
        assert usage.tokens >= 0
        assert usage.cost_usd is None or usage.cost_usd >= 0

    def test_the_number_of_first_proposals_is_a_count_or_unknown(
        self, use: Callable[..., Any], brief: Brief
    ) -> None:
        async def count(opened: Proposer) -> int | None:
            return await opened.count_first_proposals(brief)

        number = use(count)
        assert number is None or number >= 0

    # -- at work --

    def test_an_opened_proposer_looks_the_same_to_the_optimizer(
        self, use: Callable[..., Any], proposer: Proposer
    ) -> None:
        async def look(opened: Proposer) -> tuple[Any, ...]:
            assert isinstance(opened, Proposer)
            kinds = [opened.can(kind) for kind in RequestKind]
            return opened.name, opened.most_at_once, opened.can_batch, kinds

        kinds = [proposer.can(kind) for kind in RequestKind]
        assert use(look) == (proposer.name, proposer.most_at_once, proposer.can_batch, kinds)

    def test_a_reply_survives_a_round_trip_through_the_journal(
        self, use: Callable[..., Any], brief: Brief
    ) -> None:
        async def ask(opened: Proposer) -> Reply:
            return await opened.propose(brief, FIRST)

        reply = use(ask)
        assert replies.check_reply(reply, "it") is reply, "it can't be kept as it is"
        assert (
            replies.read_record(json.loads(json.dumps(replies.make_record(FIRST, reply)))) == reply
        )

    def test_a_reply_has_a_candidate_or_a_reason(
        self, use: Callable[..., Any], brief: Brief
    ) -> None:
        async def ask(opened: Proposer) -> Reply:
            return await opened.propose(brief, FIRST)

        reply = use(ask)
        assert len(reply.candidates) <= FIRST.wanted
        assert any(reply.candidates) != bool(reply.refusal)

    def test_a_request_in_parts_gets_a_reply_as_well(
        self, use: Callable[..., Any], brief: Brief
    ) -> None:
        kept: list[Reply] = []

        async def ask(opened: Proposer) -> Reply:
            return await opened.propose_in_parts(brief, FIRST, None, kept.append)

        reply = use(ask)
        assert any(reply.candidates) != bool(reply.refusal)
        assert all(replies.check_reply(step, "it") is step for step in kept)

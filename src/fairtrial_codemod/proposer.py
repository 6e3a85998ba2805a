"""The proposer `codemod`: source transformations of known slow patterns, offline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from fairtrial import Brief, Candidate, Proposer, Reply, Request
from fairtrial.arena import FileState, Workshop
from fairtrial.core import Mistake, Record, did_you_mean
from fairtrial.optimize import RequestKind, Usage
from fairtrial.sandbox import HostLock, Lease, usable_cores
from fairtrial_codemod.catalog import CATALOG
from fairtrial_codemod.planning import Planner, PlanRules, ProposalPlan
from fairtrial_codemod.recipes import Interrupted, never, select_files
from fairtrial_codemod.ruff import find_ruff

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CodemodProposer(Proposer, Record):
    """Source transformations, alone and in combinations; deterministic.

    combinations: whether transformations are also combined, from the start and step by step
    families: the families or single transformations that may be used; empty for all
    most: how many different first proposals there are
    """

    combinations: bool = True
    families: tuple[str, ...] = ()
    most: int = 32

    name = "codemod"

    def _mistakes(self) -> Iterator[Mistake]:
        known = {word for rule in CATALOG for word in (rule.name, rule.family)}
        for place, word in enumerate(self.families):
            if word not in known:
                message = f"there is no family or transformation '{word}'"
                yield Mistake(("families", place), message, did_you_mean(word, sorted(known)))
        if self.most < 1:
            yield Mistake(("most",), f"must be 1 or more, got {self.most}")

    @property
    def most_at_once(self) -> int:
        """One request for each core, since all of it is computation."""
        return len(usable_cores())

    def can(self, kind: RequestKind) -> bool:
        """Return whether a kind of request can be answered: refining needs combinations."""
        return self.combinations or kind in (RequestKind.INITIAL, RequestKind.REPAIR)

    async def open(self, workshop: Workshop) -> OpenCodemodProposer:
        """Return the proposer with the arena's host lock."""
        return OpenCodemodProposer(self, workshop.lock)

    async def count_first_proposals(self, brief: Brief) -> int:
        """Return how many different first proposals there are for these files."""
        return await OpenCodemodProposer(self, HostLock()).count_first_proposals(brief)

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Return a candidate or a refusal: a function of the files and the request."""
        return await OpenCodemodProposer(self, HostLock()).propose(brief, request)

    def count(self, brief: Brief, must_stop: Callable[[], bool] = never) -> int:
        """Do the work of `count_first_proposals` in this thread, without the host lock."""
        files, _ = select_files(brief.files)
        return Planner(files, self._rules(brief), must_stop).count_firsts()

    def answer(
        self, brief: Brief, request: Request, must_stop: Callable[[], bool] = never
    ) -> Reply:
        """Do the work of `propose` in this thread, without the host lock.

        Raise `Interrupted` once `must_stop` returns True; no work is lost.
        """
        files, skipped = select_files(brief.files)
        if find_ruff() is None:
            skipped.append("ruff is not installed: its fixes are left out")
        planner = Planner(files, self._rules(brief), must_stop)
        if request.kind is RequestKind.INITIAL:
            plans = [planner.plan_first(request.lineage)]
        else:
            plans = [planner.follow(request, tried) for tried in request.about]
        made = [plan for plan in plans if isinstance(plan, ProposalPlan)]
        if not made:
            refusals = [plan for plan in plans if isinstance(plan, str)]
            why = "; ".join(dict.fromkeys([*refusals, *skipped]))
            return Reply(refusal=why or "there is nothing to continue from")
        parents: list[str | None] = [tried.digest for tried in request.about]
        return Reply(
            candidates=tuple(
                self._candidate(plan, brief, parent, skipped)
                if isinstance(plan, ProposalPlan)
                else None
                for plan, parent in zip(plans, parents or [None], strict=True)
            )
        )

    def _rules(self, brief: Brief) -> PlanRules:
        wanted = {*self.families}
        names = tuple(
            rule.name for rule in CATALOG if not wanted or wanted & {rule.name, rule.family}
        )
        return PlanRules(names, self.combinations, self.most, brief.benchmarks, brief.checks)

    def _candidate(
        self, plan: ProposalPlan, brief: Brief, parent: str | None, skipped: list[str]
    ) -> Candidate:
        # Against the base, not against what it was made from: so is every candidate.
        changed = {
            path: FileState(text.encode())
            for path, text in plan.files.items()
            if brief.files.get(path) != text
        }
        note = "\n".join([*plan.notes, *skipped])
        return Candidate(plan.name, files=changed, parent=parent, origin=self.name, note=note)


@dataclass(frozen=True, slots=True)
class OpenCodemodProposer(Proposer):
    """A codemod proposer that computes under the host lock, never beside something that is timed.

    options: the proposer as the study describes it
    lock: the host lock
    """

    options: CodemodProposer
    lock: HostLock

    name = "codemod"

    @property
    def most_at_once(self) -> int:
        """One request for each core."""
        return self.options.most_at_once

    def can(self, kind: RequestKind) -> bool:
        """Return whether a kind of request can be answered."""
        return self.options.can(kind)

    async def count_first_proposals(self, brief: Brief) -> int:
        """Return how many different first proposals there are for these files."""
        return await _run_in_thread(self.lock, partial(self.options.count, brief))

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Return a candidate or a refusal."""
        began_s = time.monotonic()
        reply = await _run_in_thread(self.lock, partial(self.options.answer, brief, request))
        return replace(reply, usage=Usage(model=self.name, seconds=time.monotonic() - began_s))


async def _run_in_thread(lock: HostLock, work: Callable[[Callable[[], bool]], T]) -> T:
    """Return what `work` returns in a thread under the shared host lock, since it uses a core.

    work: gets a function that says whether it must stop, and then raises `Interrupted`
    """
    from anyio import from_thread, get_cancelled_exc_class, to_thread
    from anyio.lowlevel import checkpoint

    cancelled = get_cancelled_exc_class()

    def must_stop(lease: Lease) -> bool:
        try:
            from_thread.check_cancelled()
        except cancelled:
            return True
        return lease.is_overdue()

    while True:
        # A cancelled task waits for the thread, which would otherwise run on without the lease.
        async with lock.shared() as lease:
            try:
                return await to_thread.run_sync(work, partial(must_stop, lease))
            except Interrupted:
                await checkpoint()

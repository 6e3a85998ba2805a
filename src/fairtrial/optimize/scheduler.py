"""The scheduler: makes the requests that the loop decides on, and has candidates judged and timed.

Requests are made as soon as the loop has any, candidates are checked as soon as they come, and
those that pass wait to be timed. Timing has the machine to itself: it begins when no candidate is
being checked, when enough candidates wait, or when the first has waited long enough.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairtrial.arena import (
    Arena,
    Basis,
    Bench,
    Candidate,
    Changes,
    Judgement,
    Measurement,
    Reason,
    Rejection,
    Verdict,
    events as arena_events,
    time_candidate,
)
from fairtrial.core import events, on_one_line, single_cause
from fairtrial.optimize.events import (
    CandidateEntered,
    CandidatePassed,
    ProposalReceived,
    ProposalRequested,
    RequestWithdrawn,
)
from fairtrial.optimize.journal import (
    VERDICT,
    is_final,
    make_judgement_record,
    make_tried,
)
from fairtrial.optimize.lineage import CandidateEntry
from fairtrial.optimize.loop import OptimizeLoop
from fairtrial.optimize.proposals import Reply, Request, Usage
from fairtrial.optimize.requests import ProposerClient, UsageTotal
from fairtrial.optimize.resolved_candidates import ResolvedCandidate, resolve_candidates

if TYPE_CHECKING:
    from anyio import Event
    from anyio.abc import TaskGroup

MANY_WAITING = 4
"""As soon as so many candidates wait to be timed, no further check is started."""
LONGEST_WAIT_S = 20.0
"""How long a candidate waits to be timed at most, while others are still being checked."""
POLL_S = 0.25
"""How often the waiting time is compared with that limit."""
LONGEST_WHY = 200
"""The longest refusal of a proposer that is shown."""


@dataclass(slots=True)
class _WaitingCandidate:
    """A candidate that passed its checks and waits to be timed."""

    entry: CandidateEntry
    judgement: Judgement
    diff: str
    since: float = field(default_factory=time.monotonic)


class Scheduler:
    """Runs one optimization.

    spent: the usage of all replies, earlier attempts at the same run included
    candidates, changes, usages: of each candidate in the tree, by its id
    judgements: the judgements so far, by digest
    measured_again: the measurements of the best in fresh sessions, by their ids
    """

    def __init__(
        self,
        arena: Arena,
        bench: Bench,
        loop: OptimizeLoop,
        client: ProposerClient,
        emit: events.Emit,
    ) -> None:
        """Make a scheduler.

        arena, bench: judge and time candidates
        loop: decides what to ask for next
        client: gets replies, and writes them to the journal
        emit: called with each progress event
        """
        self._arena, self._bench, self._loop = arena, bench, loop
        self._client, self._emit = client, emit
        client.on_held = self._proceed
        self.spent = UsageTotal()
        self.changes: dict[str, Changes] = {}
        self.candidates: dict[str, Candidate] = {}
        self.usages: dict[str, Usage] = {}
        self.judgements: dict[str, Judgement] = {}
        self.measured_again: dict[str, Measurement] = {}
        self._waiting: list[_WaitingCandidate] = []
        self._serving = self._checking = 0
        self._is_timing = False
        self._failure: Exception | None = None

    async def run(self) -> None:
        """Run until the loop is over; raise the first failure that is no candidate's fault.

        Before it is raised, work under way is finished and written to the journal, since it is
        paid for.
        """
        import anyio

        self._over: Event = anyio.Event()
        self._changed: Event = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks: TaskGroup = tasks
                tasks.start_soon(self._keep_timing)
                if self._client.left_s is not None and self._client.left_s > 0:
                    tasks.start_soon(self._stop_in_time, self._client.left_s)
                self._proceed()
                await self._over.wait()
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise single_cause(group) from None
        if self._failure is not None:
            raise self._failure

    @property
    def min_effect(self) -> float:
        """The smallest effect of interest, as a share."""
        return self._arena.problem.min_effect

    @property
    def measurements(self) -> dict[str, Measurement]:
        """All measurements of this attempt: by the candidate's id, fresh ones by ``ID again``."""
        first = {
            entry.id: measured
            for entry in self.entries
            if entry.duplicate_of is None
            and (judgement := self.judgements.get(entry.digest)) is not None
            and (measured := judgement.measurement) is not None
        }
        return first | {f"{id} again": measured for id, measured in self.measured_again.items()}

    @property
    def entries(self) -> tuple[CandidateEntry, ...]:
        """The tree of candidates."""
        return self._loop.entries

    @property
    def replies(self) -> Sequence[Mapping[str, Any]]:
        """The records of all replies."""
        return self._client.records

    @property
    def why_over(self) -> str:
        """Why the loop ended."""
        return self._loop.why_over

    def _proceed(self) -> None:
        """Make the requests that can be made now, or end; called after every change."""
        self._changed.set()
        for request in self._loop.next_requests():
            self._emit(ProposalRequested(request.key, request.kind, request.lineage))
            self._serving += 1
            self._tasks.start_soon(self._serve, request)
        is_idle = self._serving == self._client.held and not self._checking
        if self._client.held and is_idle and not self._waiting and not self._is_timing:
            self._stop(f"{self._client.max_seconds:g} s are over")
        if self._loop.is_over:
            self._over.set()

    async def _stop_in_time(self, left_s: float) -> None:
        import anyio

        await anyio.sleep(left_s)
        self._stop(f"{self._client.max_seconds:g} s are over")
        self._proceed()

    def _stop(self, why: str) -> None:
        self._loop.stop(why)
        self._client.release()

    def _fail(self, error: Exception) -> None:
        """Stop for a failure that is no candidate's fault; `run` raises it."""
        self._failure = self._failure or error
        self._stop(f"it failed: {error}")

    # -- proposals --

    async def _serve(self, request: Request) -> None:
        """Make one request, and start the checks of its candidates."""
        reply: Reply | None = None
        resolved: list[ResolvedCandidate | None] = []
        try:
            reply = await self._client.request(request)
            if reply is not None:
                resolved = await resolve_candidates(self._arena, reply.candidates[: request.wanted])
        except Exception as error:
            self._fail(error)
        self._serving -= 1
        about = request.key, request.kind, request.lineage
        if reply is None:
            self._emit(RequestWithdrawn(*about))
            reply = Reply()
        else:
            self.spent.add(reply.usage)
            self._emit(ProposalReceived(*about, reply.usage, reply.refusal))
        self._enter(request, reply, resolved)
        self._proceed()

    def _enter(
        self, request: Request, reply: Reply, resolved: Sequence[ResolvedCandidate | None]
    ) -> None:
        """Enter candidates into the tree, and start the checks of new ones."""
        entries = self._loop.reply(
            request,
            [None if item is None else item.digest for item in resolved],
            ["" if item is None else item.diff for item in resolved],
            reply.usage,
            ["" if item is None else item.candidate.name for item in resolved],
            on_one_line(reply.refusal, LONGEST_WHY),
        )
        entered = [item for item in resolved if item is not None]
        for entry, item in zip(entries, entered, strict=True):
            self._emit(
                CandidateEntered(
                    entry.id,
                    entry.parent,
                    entry.kind,
                    item.candidate.name,
                    item.candidate.note,
                    entry.duplicate_of,
                )
            )
            self.candidates[entry.id] = item.candidate
            self.usages[entry.id] = reply.usage.divided_by(request.wanted)
            if isinstance(item.resolved, Changes):
                self.changes[entry.id] = item.resolved
            if entry.duplicate_of is None:
                self._checking += 1
                self._tasks.start_soon(self._judge, entry, item)

    # -- verdicts --

    async def _judge(self, entry: CandidateEntry, item: ResolvedCandidate) -> None:
        """Check a candidate; one that passes waits to be timed."""
        judgement = self._client.earlier.verdicts.get(entry.digest)
        is_known = judgement is not None
        try:
            if judgement is None:
                judgement = await self._arena.judge(
                    item.candidate,
                    item.resolved,
                    lambda: self._emit(arena_events.CheckStarted(entry.id)),
                )
        except Exception as error:
            self._fail(error)
            judgement = _make_unjudged(entry, self._arena.basis, error)
        self._checking -= 1
        if judgement.verdict == Verdict.PASSED:
            self._waiting.append(_WaitingCandidate(entry, judgement, item.diff))
            self._emit(CandidatePassed(entry.id))
            self._proceed()
        else:
            self._settle(entry, judgement, item.diff, is_known=is_known)

    def _settle(
        self, entry: CandidateEntry, judgement: Judgement, diff: str, *, is_known: bool = False
    ) -> None:
        """Write a final judgement to the journal, and pass it to the loop."""
        self.judgements[entry.digest] = judgement
        try:
            if not is_known and is_final(judgement):
                self._client.keep(VERDICT, make_judgement_record(judgement))
        except Exception as error:
            self._fail(error)
        self._emit(arena_events.CandidateJudged(entry.id, judgement))
        self._loop.judge(entry.id, make_tried(judgement, diff))
        self._proceed()

    # -- timing --

    async def _keep_timing(self) -> None:
        import anyio

        while True:
            if not self._is_time():
                self._changed = anyio.Event()
                with anyio.move_on_after(POLL_S if self._waiting else None):
                    await self._changed.wait()
                continue
            due, self._waiting = sorted(self._waiting, key=_get_place), []
            self._is_timing = True
            for waiting in due:
                await self._time(waiting)
            self._is_timing = False
            self._proceed()

    def _is_time(self) -> bool:
        if not self._waiting:
            return False
        waited_s = time.monotonic() - min(waiting.since for waiting in self._waiting)
        are_many = len(self._waiting) >= MANY_WAITING
        return self._checking == 0 or are_many or waited_s >= LONGEST_WAIT_S

    async def _time(self, waiting: _WaitingCandidate) -> None:
        entry, judgement = waiting.entry, waiting.judgement
        self._emit(arena_events.TimingProgress(entry.id, 0))
        try:
            changes = self.changes[entry.id]
            result = await time_candidate(
                self._arena, self._bench, entry.id, changes, is_final=False, emit=self._emit
            )
            judgement = judgement.with_timing(result)
        except Exception as error:
            self._fail(error)
            judgement = _make_unjudged(entry, judgement.basis, error)
        self._settle(entry, judgement, waiting.diff)


def _make_unjudged(entry: CandidateEntry, basis: Basis, error: Exception) -> Judgement:
    """Return the judgement of a candidate that couldn't be judged; it is judged on resume."""
    why = Rejection(Reason.EVALUATOR, str(error))
    return Judgement(entry.name, entry.digest, Verdict.INCONCLUSIVE, basis, rejection=why.cleaned())


def _get_place(waiting: _WaitingCandidate) -> tuple[int, int]:
    return waiting.entry.lineage, waiting.entry.step

"""Proposals, checks and timing at the same time: what `Loop` decides, done.

Requests go out as soon as there are any, candidates are checked as soon as they come, those that
pass wait for the clock. Timing stands alone on the machine: it begins when nothing else is being
checked, when enough candidates wait, or when the first has waited long enough.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairtrial.agents.optimise.lines import Entry
from fairtrial.agents.optimise.loop import Loop
from fairtrial.agents.optimise.records import (
    REPLY,
    VERDICT,
    Journal,
    Known,
    is_final,
    judgement_record,
    tried_of,
)
from fairtrial.agents.optimise.watching import Watcher
from fairtrial.agents.proposers.replay import record_of, reply_of
from fairtrial.arena.arena import Arena
from fairtrial.arena.bench.bench import Bench
from fairtrial.arena.contest import time_candidate, with_timing
from fairtrial.arena.tasks import single_cause
from fairtrial.errors import LabError
from fairtrial.model.candidates import Candidate, Changes
from fairtrial.model.judgements import Judgement
from fairtrial.model.proposals import Brief, Reply, Request, Usage
from fairtrial.model.timings import Estimate
from fairtrial.model.verdicts import Rejection, Verdict
from fairtrial.protocols import Proposer

if TYPE_CHECKING:
    from anyio import Event, Semaphore
    from anyio.abc import TaskGroup

ENOUGH_WAIT = 4
"""So many candidates that wait for the clock are worth stopping checks for."""
DRAIN_AFTER_S = 20.0
"""So long the first of them waits at most while others are still being checked."""
LOOK_AGAIN_S = 0.25


@dataclass(slots=True)
class Spent:
    """What has been paid so far, earlier attempts at the same run included."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    is_cost_known: bool = True

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input_tokens + self.output_tokens

    def as_metrics(self) -> dict[str, Any]:
        """As budgets add them up; of what isn't known, what is known of it."""
        return {
            "cost_usd": self.cost_usd,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }

    def add(self, usage: Usage) -> None:
        """Another answer."""
        self.input_tokens += usage.prompt_tokens
        self.output_tokens += usage.completion_tokens
        self.cost_usd += usage.cost_usd or 0.0
        self.is_cost_known &= usage.cost_usd is not None


@dataclass(frozen=True, slots=True)
class _Found:
    """A candidate, and what it comes to against the base."""

    candidate: Candidate
    resolved: Changes | Rejection
    diff: str

    @property
    def digest(self) -> str:
        """What it is known by; one that can't be used, by its own bytes."""
        if isinstance(self.resolved, Changes):
            return self.resolved.digest
        told = hashlib.sha256(self.candidate.diff or b"")
        for path, state in sorted(self.candidate.files.items()):
            told.update(path.encode("utf-8", "surrogateescape") + b"\0" + state.content + b"\0")
        return f"unusable-{told.hexdigest()}"


@dataclass(slots=True)
class _Waiting:
    """A candidate that passed its checks and waits for the clock."""

    entry: Entry
    judgement: Judgement
    diff: str
    since: float = field(default_factory=time.monotonic)


class Stream:
    """One optimisation under way."""

    def __init__(
        self,
        arena: Arena,
        bench: Bench,
        loop: Loop,
        proposer: Proposer,
        brief: Brief,
        *,
        journal: Journal,
        known: Known,
        max_seconds: float | None,
        watcher: Watcher,
    ) -> None:
        self._arena, self._bench, self._loop = arena, bench, loop
        self._proposer, self._brief = proposer, brief
        self._journal, self._known, self._max_seconds = journal, known, max_seconds
        self._watcher = watcher
        self.spent = Spent()
        self.changes: dict[str, Changes] = {}
        self.notes: dict[str, str] = {}
        self.usages: dict[str, Usage] = {}
        self.judgements: dict[str, Judgement] = {}
        self._waiting: list[_Waiting] = []
        self._checking = 0
        self._failure: LabError | None = None

    async def run(self) -> None:
        """Go on until the loop is over; raises what went wrong outside of any candidate."""
        import anyio

        self._over: Event = anyio.Event()
        self._seats: Semaphore = anyio.Semaphore(self._proposer.most_at_once)
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks: TaskGroup = tasks
                tasks.start_soon(self._keep_timing)
                if self._max_seconds is not None:
                    tasks.start_soon(self._stop_in_time, self._max_seconds)
                self._go_on()
                await self._over.wait()
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise single_cause(group) from None
        if self._failure is not None:
            raise self._failure

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The tree of candidates."""
        return self._loop.entries

    @property
    def why_over(self) -> str:
        """Why it ended."""
        return self._loop.why_over

    def _go_on(self) -> None:
        """Whatever has changed: ask for what can be asked for now, or end."""
        for request in self._loop.ask():
            self._watcher.asked(request)
            self._tasks.start_soon(self._serve, request)
        if self._loop.is_over:
            self._over.set()

    async def _stop_in_time(self, max_seconds: float) -> None:
        import anyio

        await anyio.sleep(max_seconds)
        self._loop.stop(f"{max_seconds:g} s are over")
        self._go_on()

    # -- proposals --

    async def _serve(self, request: Request) -> None:
        """One request: from asking to candidates under check."""
        async with self._seats:
            try:
                # What waits for a seat has not been paid for, and needn't be.
                reply = Reply() if self._loop.is_stopped else await self._reply(request)
            except LabError as error:  # what others still work on is paid for, and is kept
                self._failure = self._failure or error
                self._loop.stop(f"the proposer failed: {error}")
                reply = Reply(refusal=str(error))
        self.spent.add(reply.usage)
        self._watcher.replied(request, reply)
        await self._enter(request, reply)

    async def _reply(self, request: Request) -> Reply:
        record = self._known.replies.get(request.key)
        if record is not None:
            return reply_of(record)
        reply = await self._proposer.propose(self._brief, request)
        self._journal.append(REPLY, record_of(request, reply))
        return reply

    async def _enter(self, request: Request, reply: Reply) -> None:
        """Candidates into the tree; what is new goes to its checks."""
        answered = reply.candidates[: request.wanted]
        given = [candidate for candidate in answered if candidate is not None]
        found = {
            id(candidate): await self._find(candidate, resolved)
            for candidate, resolved in zip(given, await self._arena.resolve_all(given), strict=True)
        }
        places = [None if each is None else found[id(each)] for each in answered]
        digests = [None if each is None else each.digest for each in places]
        diffs = ["" if each is None else each.diff for each in places]
        names = ["" if each is None else each.name for each in answered]
        entries = self._loop.reply(request, digests, diffs, reply.usage, names)
        entered = [each for each in places if each is not None]
        for entry, each in zip(entries, entered, strict=True):
            self._watcher.entered(entry, each.candidate)
            self.notes[entry.id] = each.candidate.note
            self.usages[entry.id] = reply.usage.shared_by(request.wanted)
            if isinstance(each.resolved, Changes):
                self.changes[entry.id] = each.resolved
            if entry.duplicate_of is None:
                self._tasks.start_soon(self._judge, entry, each)
        self._go_on()

    async def _find(self, candidate: Candidate, resolved: Changes | Rejection) -> _Found:
        """With its diff; of one that can't be used, what its maker meant by it."""
        diff = await self._arena.render(resolved) or (candidate.diff or b"").decode(
            "utf-8", "replace"
        )
        return _Found(candidate, resolved, diff)

    # -- verdicts --

    async def _judge(self, entry: Entry, found: _Found) -> None:
        """Check one; what passes waits for the clock."""
        recorded = self._known.verdicts.get(entry.digest)
        if recorded is not None:
            self._settle(entry, recorded, found.diff, is_known=True)
            return
        begun = self._watcher.checking
        self._checking += 1
        try:
            judgement = await self._arena.judge(
                found.candidate, found.resolved, lambda: begun(entry)
            )
        finally:
            self._checking -= 1
        if judgement.verdict == Verdict.PASSED:
            self._waiting.append(_Waiting(entry, judgement, found.diff))
            self._watcher.passed(entry)
        else:
            self._settle(entry, judgement, found.diff)

    def _settle(
        self, entry: Entry, judgement: Judgement, diff: str, *, is_known: bool = False
    ) -> None:
        self.judgements[entry.digest] = judgement
        if not is_known and is_final(judgement):
            self._journal.append(VERDICT, judgement_record(judgement))
        self._watcher.judged(entry, judgement, diff)
        self._loop.judge(entry.id, tried_of(judgement, diff))
        self._go_on()

    # -- the clock --

    async def _keep_timing(self) -> None:
        import anyio

        while True:
            if not self._is_time():
                await anyio.sleep(LOOK_AGAIN_S)
                continue
            due, self._waiting = sorted(self._waiting, key=_place), []
            for waiting in due:
                await self._time(waiting)

    def _is_time(self) -> bool:
        if not self._waiting:
            return False
        waited_s = time.monotonic() - min(each.since for each in self._waiting)
        return self._checking == 0 or len(self._waiting) >= ENOUGH_WAIT or waited_s >= DRAIN_AFTER_S

    async def _time(self, waiting: _Waiting) -> None:
        def watch(_: str, sessions: int, estimate: Estimate | None) -> None:
            self._watcher.timing(waiting.entry, sessions, estimate)

        entry = waiting.entry
        self._watcher.timing(entry, 0, None)
        changes = self.changes[entry.id]
        result = await time_candidate(self._arena, self._bench, entry.id, changes, watcher=watch)
        self._settle(entry, with_timing(waiting.judgement, result), waiting.diff)


def _place(waiting: _Waiting) -> tuple[int, int]:
    return waiting.entry.line, waiting.entry.step

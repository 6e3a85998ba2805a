"""Proposals, checks and timing at the same time: what `Loop` decides, done.

Requests go out as soon as there are any, candidates are checked as soon as they come, those that
pass wait for the clock. Timing stands alone on the machine: it begins when nothing else is being
checked, when enough candidates wait, or when the first has waited long enough.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.arena import (
    Arena,
    Basis,
    Bench,
    Candidate,
    Changes,
    Estimate,
    Judgement,
    Reason,
    Rejection,
    Verdict,
    single_cause,
    time_candidate,
    with_timing,
)
from fairtrial.core import on_one_line
from fairtrial.optimize.journal import (
    VERDICT,
    Journal,
    Known,
    is_final,
    judgement_record,
    tried_of,
)
from fairtrial.optimize.lineage import Entry
from fairtrial.optimize.loop import Loop
from fairtrial.optimize.proposals import Brief, Reply, Request, Usage
from fairtrial.optimize.proposer import Proposer
from fairtrial.optimize.requests import Asking, Spent
from fairtrial.optimize.watching import Watcher

if TYPE_CHECKING:
    from anyio import Event
    from anyio.abc import TaskGroup

ENOUGH_WAIT = 4
"""So many candidates that wait for the clock are worth stopping checks for."""
DRAIN_AFTER_S = 20.0
"""So long the first of them waits at most while others are still being checked."""
LOOK_AGAIN_S = 0.25
"""How often it is looked whether that long is over."""
LONGEST_WHY = 200
"""Of what a proposer says for having nothing to propose."""


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
    """One optimisation under way.

    spent: what was paid, earlier attempts at the same run included
    candidates, changes, usages: of each in the tree, by its id
    judgements: by digest
    """

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
        folder: Path | None = None,
    ) -> None:
        self._arena, self._bench, self._loop = arena, bench, loop
        self._asking = Asking(proposer, brief, journal, known, max_seconds, self._go_on, folder)
        self._max_seconds, self._known, self._watcher = max_seconds, known, watcher
        self.spent = Spent()
        self.changes: dict[str, Changes] = {}
        self.candidates: dict[str, Candidate] = {}
        self.usages: dict[str, Usage] = {}
        self.judgements: dict[str, Judgement] = {}
        self._waiting: list[_Waiting] = []
        self._serving = self._checking = 0
        self._is_timing = False
        self._failure: Exception | None = None

    async def run(self) -> None:
        """Go on until the loop is over; raises what went wrong outside of any candidate.

        What is under way then is finished and kept first: it is paid for.
        """
        import anyio

        self._over: Event = anyio.Event()
        self._changed: Event = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks: TaskGroup = tasks
                tasks.start_soon(self._keep_timing)
                if self._asking.left_s is not None and self._asking.left_s > 0:
                    tasks.start_soon(self._stop_in_time, self._asking.left_s)
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
    def replies(self) -> Sequence[Mapping[str, Any]]:
        """The records of all answers that this came of."""
        return self._asking.records

    @property
    def why_over(self) -> str:
        """Why it ended."""
        return self._loop.why_over

    def _go_on(self) -> None:
        """Whatever has changed: ask for what can be asked for now, or end."""
        self._changed.set()
        for request in self._loop.ask():
            self._watcher.asked(request)
            self._serving += 1
            self._tasks.start_soon(self._serve, request)
        is_quiet = self._serving == self._asking.held and not self._checking
        if self._asking.held and is_quiet and not self._waiting and not self._is_timing:
            self._stop(f"{self._max_seconds:g} s are over")
        if self._loop.is_over:
            self._over.set()

    async def _stop_in_time(self, left_s: float) -> None:
        import anyio

        await anyio.sleep(left_s)
        self._stop(f"{self._max_seconds:g} s are over")
        self._go_on()

    def _stop(self, why: str) -> None:
        self._loop.stop(why)
        self._asking.release()

    def _give_up(self, error: Exception) -> None:
        """Something failed that is no candidate's fault."""
        self._failure = self._failure or error
        self._stop(f"it failed: {error}")

    # -- proposals --

    async def _serve(self, request: Request) -> None:
        """One request: from asking to candidates under check."""
        reply, found = None, []
        try:
            reply = await self._asking.ask(request)
            if reply is not None:
                found = await self._find_all(reply.candidates[: request.wanted])
        except Exception as error:
            self._give_up(error)
        self._serving -= 1
        if reply is None:
            self._watcher.withdrawn(request)
            reply = Reply()
        else:
            self.spent.add(reply.usage)
            self._watcher.replied(request, reply)
        self._enter(request, reply, found)
        self._go_on()

    async def _find_all(self, candidates: Sequence[Candidate | None]) -> list[_Found | None]:
        """What they come to, with their diffs; of one that can't be used, what its maker meant."""
        given = [candidate for candidate in candidates if candidate is not None]
        read = await self._arena.read_all(given)
        made = iter(
            _Found(candidate, each, diff or (candidate.diff or b"").decode("utf-8", "replace"))
            for candidate, (each, diff) in zip(given, read, strict=True)
        )
        return [None if candidate is None else next(made) for candidate in candidates]

    def _enter(self, request: Request, reply: Reply, places: Sequence[_Found | None]) -> None:
        """Candidates into the tree; what is new goes to its checks."""
        entries = self._loop.reply(
            request,
            [None if each is None else each.digest for each in places],
            ["" if each is None else each.diff for each in places],
            reply.usage,
            ["" if each is None else each.candidate.name for each in places],
            on_one_line(reply.refusal, LONGEST_WHY),
        )
        entered = [each for each in places if each is not None]
        for entry, each in zip(entries, entered, strict=True):
            self._watcher.entered(entry, each.candidate)
            self.candidates[entry.id] = each.candidate
            self.usages[entry.id] = reply.usage.shared_by(request.wanted)
            if isinstance(each.resolved, Changes):
                self.changes[entry.id] = each.resolved
            if entry.duplicate_of is None:
                self._checking += 1
                self._tasks.start_soon(self._judge, entry, each)

    # -- verdicts --

    async def _judge(self, entry: Entry, found: _Found) -> None:
        """Check one; what passes waits for the clock."""
        judgement = self._known.verdicts.get(entry.digest)
        is_known = judgement is not None
        begun = self._watcher.checking
        try:
            if judgement is None:
                judgement = await self._arena.judge(
                    found.candidate, found.resolved, lambda: begun(entry)
                )
        except Exception as error:
            self._give_up(error)
            judgement = _unjudged(entry, self._arena.basis, error)
        self._checking -= 1
        if judgement.verdict == Verdict.PASSED:
            self._waiting.append(_Waiting(entry, judgement, found.diff))
            self._watcher.passed(entry)
            self._go_on()
        else:
            self._settle(entry, judgement, found.diff, is_known=is_known)

    def _settle(
        self, entry: Entry, judgement: Judgement, diff: str, *, is_known: bool = False
    ) -> None:
        self.judgements[entry.digest] = judgement
        try:
            if not is_known and is_final(judgement):
                self._asking.keep(VERDICT, judgement_record(judgement))
        except Exception as error:
            self._give_up(error)
        self._watcher.judged(entry, judgement, diff)
        self._loop.judge(entry.id, tried_of(judgement, diff))
        self._go_on()

    # -- the clock --

    async def _keep_timing(self) -> None:
        import anyio

        while True:
            if not self._is_time():
                self._changed = anyio.Event()
                with anyio.move_on_after(LOOK_AGAIN_S if self._waiting else None):
                    await self._changed.wait()
                continue
            due, self._waiting = sorted(self._waiting, key=_place), []
            self._is_timing = True
            for waiting in due:
                await self._time(waiting)
            self._is_timing = False
            self._go_on()

    def _is_time(self) -> bool:
        if not self._waiting:
            return False
        waited_s = time.monotonic() - min(each.since for each in self._waiting)
        return self._checking == 0 or len(self._waiting) >= ENOUGH_WAIT or waited_s >= DRAIN_AFTER_S

    async def _time(self, waiting: _Waiting) -> None:
        def watch(_: str, sessions: int, estimate: Estimate | None) -> None:
            self._watcher.timing(waiting.entry, sessions, estimate)

        entry, judgement = waiting.entry, waiting.judgement
        self._watcher.timing(entry, 0, None)
        try:
            changes = self.changes[entry.id]
            result = await time_candidate(
                self._arena, self._bench, entry.id, changes, watcher=watch
            )
            judgement = with_timing(judgement, result)
        except Exception as error:
            self._give_up(error)
            judgement = _unjudged(entry, judgement.basis, error)
        self._settle(entry, judgement, waiting.diff)


def _unjudged(entry: Entry, basis: Basis, error: Exception) -> Judgement:
    """What couldn't be judged; it is tried again when somebody goes on from here."""
    why = Rejection(Reason.EVALUATOR, str(error))
    return Judgement(entry.name, entry.digest, Verdict.INCONCLUSIVE, basis, rejection=why.cleaned())


def _place(waiting: _Waiting) -> tuple[int, int]:
    return waiting.entry.line, waiting.entry.step

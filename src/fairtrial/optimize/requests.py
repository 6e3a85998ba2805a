"""Answers to requests: those that are known already, or new ones, within the time there is."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.arena import NoRoomError, has_room
from fairtrial.core import LabError
from fairtrial.optimize.journal import REPLY, STEP, Journal, Known
from fairtrial.optimize.proposals import Brief, Reply, Request, Usage
from fairtrial.optimize.proposer import Proposer
from fairtrial.optimize.proposers.replay import Replay, record_of, reply_of
from fairtrial.optimize.replies import read_reply
from fairtrial.study import NOTHING, Paid

if TYPE_CHECKING:
    from anyio import Event, Semaphore


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


class Asking:
    """One attempt at an optimisation, as far as it asks anybody.

    known: what earlier attempts have paid for; it is neither asked for nor paid for again
    records: the answers that there are, as they are kept
    max_seconds: how long may be asked, all attempts together
    held: how many requests wait for nothing but the end, as there is no time left to make them
    on_held: called when there is another one
    folder: a folder on the disk where answers are kept; None if that isn't known
    """

    def __init__(
        self,
        proposer: Proposer,
        brief: Brief,
        journal: Journal,
        known: Known,
        max_seconds: float | None,
        on_held: Callable[[], None],
        folder: Path | None = None,
    ) -> None:
        import anyio

        self._proposer, self._brief = proposer, brief
        self._journal, self._known, self._folder = journal, known, folder
        self._began_s, self._attempt = time.monotonic(), secrets.token_hex(4)
        self._seats: Semaphore = anyio.Semaphore(proposer.most_at_once)
        self._released: Event = anyio.Event()
        self.left_s = None if max_seconds is None else max_seconds - known.seconds
        self.held, self._on_held = 0, on_held
        self.records: list[Mapping[str, Any]] = []
        self._steps = {key: reply_of(each) for key, each in known.steps.items()}

    async def ask(self, request: Request) -> Reply | None:
        """The answer; None if it isn't asked for any more: what waits has not been paid for.

        Where a part of it was paid for, that is the answer.
        """
        record = self._known.replies.get(request.key)
        if record is not None:
            self.records.append(record)
            return reply_of(record)
        if self.left_s is not None and self.left_s <= 0:
            # What others have paid for comes first: they may still be on their way.
            self.held += 1
            self._on_held()
            await self._released.wait()
        async with self._seats:
            if self._released.is_set():
                return self._settle_for(request)
            if self._folder is not None and not has_room(self._folder):
                raise NoRoomError(f"no room is left to keep answers in {self._folder}; make room")
            given = await self._propose(request)
        reply = read_reply(given, self._proposer.name)
        self.records.append(self._keep_reply(REPLY, request, reply))
        return reply

    def _settle_for(self, request: Request) -> Reply | None:
        """What was paid for on the way to an answer that nobody asks for any more."""
        step = self._steps.get(request.key)
        if step is not None:
            self.records.append(self._record(request, step))
        return step

    async def _propose(self, request: Request) -> Any:
        in_steps = getattr(self._proposer, "propose_in_steps", None)
        if in_steps is None:
            return await self._proposer.propose(self._brief, request)
        return await in_steps(
            self._brief, request, self._steps.get(request.key), partial(self._keep_step, request)
        )

    def _keep_step(self, request: Request, given: Reply) -> None:
        step = read_reply(given, self._proposer.name)
        self._keep_reply(STEP, request, step)
        self._steps[request.key] = step

    def _keep_reply(self, kind: str, request: Request, reply: Reply) -> dict[str, Any]:
        """Write an answer down, with what it took beyond what is written down already."""
        record, step = self._record(request, reply), self._steps.get(request.key)
        paid = _paid_for(reply.usage).minus(_paid_for(step.usage) if step else NOTHING)
        is_told_again = self._proposer.name == Replay.name  # it was paid for back then
        self.keep(kind, record, NOTHING if is_told_again else paid)
        return record

    def _record(self, request: Request, reply: Reply) -> dict[str, Any]:
        try:
            return record_of(request, reply)
        except (ValueError, TypeError):  # what was said on the way is no plain data: do without
            return record_of(request, replace(reply, exchange=()))

    def release(self) -> None:
        """Nothing is to be asked any more."""
        self._released.set()

    def keep(self, kind: str, data: Mapping[str, Any], paid: Paid = NOTHING) -> None:
        """Write something down that must not be done again, when it was, and what it took."""
        when = {"attempt": self._attempt, "at_s": time.monotonic() - self._began_s}
        try:
            self._journal.append(kind, {**data, **when}, **paid._asdict())
        except ValueError as error:  # it is full
            raise LabError(str(error)) from error


def _paid_for(usage: Usage) -> Paid:
    """As budgets add it up; of a cost that isn't known, nothing."""
    return Paid(usage.cost_usd or 0.0, usage.prompt_tokens, usage.completion_tokens)

"""Replies to requests: from the journal, or from the proposer within the time limit."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.arena import require_room
from fairtrial.core import LabError
from fairtrial.optimize.journal import PARTIAL, REPLY, JournalState, OptimizationJournal
from fairtrial.optimize.proposals import Brief, Reply, Request, Usage
from fairtrial.optimize.proposer import Proposer
from fairtrial.optimize.proposers.replay import Replay
from fairtrial.optimize.replies import check_reply, make_record, read_record
from fairtrial.study import agents

if TYPE_CHECKING:
    from anyio import Event, Semaphore


@dataclass(slots=True)
class UsageTotal:
    """The usage of all replies so far, earlier attempts at the same run included.

    input_tokens, output_tokens: tokens of prompts and of answers
    cost_usd: the known part of the cost
    is_cost_known: whether the cost of every reply is known
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    is_cost_known: bool = True

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input_tokens + self.output_tokens

    def as_metrics(self) -> dict[str, Any]:
        """Return the metrics that budgets add up; of an unknown cost, the known part."""
        return {
            "cost_usd": self.cost_usd,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }

    def add(self, usage: Usage) -> None:
        """Add the usage of a reply."""
        self.input_tokens += usage.prompt_tokens
        self.output_tokens += usage.completion_tokens
        self.cost_usd += usage.cost_usd or 0.0
        self.is_cost_known &= usage.cost_usd is not None


class ProposerClient:
    """Gets the replies of one attempt at an optimization, and writes them to its journal.

    earlier: what earlier attempts have paid for; it is neither requested nor paid for again
    max_seconds: how long requests may be made, all attempts together; None for no limit
    on_held: called when another request is held
    records: the replies so far, as plain data
    left_s: the remaining time for requests; None for no limit
    held: how many requests wait for the end, since no time is left to make them
    """

    def __init__(
        self,
        proposer: Proposer,
        brief: Brief,
        journal: OptimizationJournal,
        earlier: JournalState,
        max_seconds: float | None = None,
        folder: Path | None = None,
    ) -> None:
        """Make a client.

        journal: keeps replies
        folder: a folder on the disk of the journal, to check for free space; None if unknown
        """
        import anyio

        self._proposer, self._brief = proposer, brief
        self._journal, self.earlier, self._folder = journal, earlier, folder
        self.max_seconds = max_seconds
        self._began_s, self._attempt = time.monotonic(), secrets.token_hex(4)
        self._seats: Semaphore = anyio.Semaphore(proposer.most_at_once)
        self._released: Event = anyio.Event()
        self.left_s = None if max_seconds is None else max_seconds - earlier.seconds
        self.held = 0
        self.on_held: Callable[[], None] = lambda: None
        self.records: list[Mapping[str, Any]] = []
        self._partial_replies = {
            key: read_record(record) for key, record in earlier.partial_replies.items()
        }

    async def request(self, request: Request) -> Reply | None:
        """Return the reply to a request, once it is in the journal.

        Return None if the request is withdrawn before anything was paid for it; if a step of it was
        paid for, that step is the reply.
        """
        record = self.earlier.replies.get(request.key)
        if record is not None:
            self.records.append(record)
            return read_record(record)
        if self.left_s is not None and self.left_s <= 0:
            # Replies from the journal come first: others may still be on their way.
            self.held += 1
            self.on_held()
            await self._released.wait()
        async with self._seats:
            if self._released.is_set():
                return self._settle_for_part(request)
            if self._folder is not None:
                require_room(self._folder, "answers")
            earlier, keep = (
                self._partial_replies.get(request.key),
                partial(self._keep_part, request),
            )
            given = await self._proposer.propose_in_parts(self._brief, request, earlier, keep)
        reply = check_reply(given, self._proposer.name)
        self.records.append(self._keep_reply(REPLY, request, reply))
        return reply

    def _settle_for_part(self, request: Request) -> Reply | None:
        """Return the paid step of a withdrawn request; None if there is none."""
        step = self._partial_replies.get(request.key)
        if step is not None:
            self.records.append(_make_writable_record(request, step))
        return step

    def _keep_part(self, request: Request, given: Reply) -> None:
        step = check_reply(given, self._proposer.name)
        self._keep_reply(PARTIAL, request, step)
        self._partial_replies[request.key] = step

    def _keep_reply(self, kind: str, request: Request, reply: Reply) -> dict[str, Any]:
        """Write a reply to the journal, with what was paid since its last step."""
        record, step = _make_writable_record(request, reply), self._partial_replies.get(request.key)
        paid = _get_payment(reply.usage).minus(
            _get_payment(step.usage) if step else agents.NO_EXPENSE
        )
        is_replayed = self._proposer.name == Replay.name  # it was paid for when it was recorded
        self.keep(kind, record, agents.NO_EXPENSE if is_replayed else paid)
        return record

    def release(self) -> None:
        """Withdraw all requests that aren't under way."""
        self._released.set()

    def keep(
        self, kind: str, data: Mapping[str, Any], paid: agents.Expense = agents.NO_EXPENSE
    ) -> None:
        """Append an entry to the journal, with its time and payment; `LabError` if it is full."""
        when = {"attempt": self._attempt, "at_s": time.monotonic() - self._began_s}
        try:
            self._journal.append(kind, {**data, **when}, **paid._asdict())
        except ValueError as error:  # it is full
            raise LabError(str(error)) from error


def _make_writable_record(request: Request, reply: Reply) -> dict[str, Any]:
    """Return the record of a reply, without its exchange if that is no plain data."""
    try:
        return make_record(request, reply)
    except (ValueError, TypeError):
        return make_record(request, replace(reply, exchange=()))


def _get_payment(usage: Usage) -> agents.Expense:
    """Return what budgets add up; nothing for an unknown cost."""
    return agents.Expense(usage.cost_usd or 0.0, usage.prompt_tokens, usage.completion_tokens)

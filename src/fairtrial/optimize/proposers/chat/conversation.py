"""One request to a model: a question, its answer, and at most one complaint about that answer.

An unusable answer is paid for. Before the complaint is sent, it is kept as the reply that it would
be if no other answer came, so that it isn't asked for again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.arena import Candidate, FileState
from fairtrial.core import LabError, on_one_line
from fairtrial.llm import (
    ChatAnswer,
    Dialect,
    Endpoint,
    Price,
    RequestLog,
    RequestRefused,
    cost_usd,
    read_logged_answer,
    send_chat_request,
)
from fairtrial.optimize.proposals import Brief, Reply, Request, Usage
from fairtrial.optimize.proposer import KeepStep
from fairtrial.optimize.proposers.chat.answers import Draft, read_answer
from fairtrial.optimize.proposers.chat.prompts import Form, Message, write_complaint

LONGEST_REFUSAL = 1_000


def keep_nothing(reply: Reply) -> None:
    """Drop a partial reply: for callers that don't resume."""


@dataclass(frozen=True, slots=True)
class ConversationSettings:
    """How a model is asked.

    model: its name
    endpoint: its endpoint
    form: the form of its answers
    price: the price of its tokens, if that is known
    make_body: returns the body of a request, given the messages
    dialect: which fields the endpoint understands
    """

    model: str
    endpoint: Endpoint
    form: Form
    price: Price | None
    make_body: Callable[[list[Message]], dict[str, Any]]
    dialect: Dialect = field(default_factory=Dialect)


@dataclass(slots=True)
class Conversation:
    """One request, from the question to the reply.

    settings: how the model is asked
    brief, request: what it is asked
    earlier: an unusable answer that an earlier attempt has paid for, if there is one
    keep: stores an unusable answer before the model is asked once more
    log: every attempt
    answers: the model's answers
    is_recalled: whether the first of them is `earlier`
    started_s: when it began
    """

    settings: ConversationSettings
    brief: Brief
    request: Request
    earlier: Reply | None = None
    keep: KeepStep = keep_nothing
    log: RequestLog = field(default_factory=RequestLog)
    answers: list[ChatAnswer] = field(default_factory=list)
    is_recalled: bool = False
    started_s: float = field(default_factory=time.monotonic)

    async def hold(self, messages: list[Message]) -> Reply:
        """Return the reply; ask the model once more if its first answer can't be used."""
        try:
            drafts = self._recall()
            if drafts is None:
                drafts = await self._ask(messages)
        except RequestRefused as refused:
            return self._reply(refusal=str(refused))
        problems = _find_problems(drafts)
        if problems:
            if not self.is_recalled:
                self.keep(self._reply(refusal=_unusable(problems)))
            complaint = write_complaint(problems, self.request.wanted)
            answer = self.answers[-1].text or "(nothing)"  # endpoints may refuse an empty text
            messages = [
                *messages,
                {"role": "assistant", "content": answer},
                {"role": "user", "content": complaint},
            ]
            try:
                drafts = await self._ask(messages)
            except (RequestRefused, LabError) as error:
                # The first answer is paid for, so it is reported.
                return self._reply(refusal=f"{_unusable(problems)}; asked once more: {error}")
            problems = _find_problems(drafts)
        if problems:
            return self._reply(refusal=_unusable(problems))
        return self._reply(drafts)

    def _recall(self) -> list[Draft] | None:
        """Return the drafts of the earlier answer; None if there is none that can be read."""
        answer = None if self.earlier is None else read_logged_answer(self.earlier.exchange)
        if self.earlier is None or answer is None:
            return None
        self.is_recalled = True
        self.log.entries.extend(self.earlier.exchange)
        return self._read(answer)

    async def _ask(self, messages: list[Message]) -> list[Draft]:
        settings, seed = self.settings, self.request.seed + len(self.answers)
        body = settings.make_body(messages)
        return self._read(
            await send_chat_request(settings.endpoint, body, seed, self.log, settings.dialect)
        )

    def _read(self, answer: ChatAnswer) -> list[Draft]:
        secret = self.settings.endpoint.secret
        self.answers.append(answer)
        if answer.refusal or answer.finish == "content_filter":
            raise RequestRefused(f"the model refuses: {answer.refusal or answer.finish}")
        if secret.is_in(answer.text):
            raise RequestRefused(f"the answer holds the value of {secret.variable}")
        is_cut = answer.finish == "length"
        drafts = read_answer(
            answer.text, self.brief.files, self.settings.form, self.request.wanted, is_cut=is_cut
        )
        for path, text in (item for draft in drafts for item in draft.files.items()):
            if secret.is_in(text):  # the base may hold it
                raise RequestRefused(
                    f"{path} holds the value of {secret.variable}: take it out of it"
                )
        return drafts

    def _reply(self, drafts: Sequence[Draft] = (), refusal: str = "") -> Reply:
        candidates = tuple(self._candidate(place, draft) for place, draft in enumerate(drafts))
        if not refusal and not any(candidates):
            note = next((draft.note for draft in drafts if draft.note), "")
            refusal = f"the answer changes nothing: {note}".removesuffix(": ")
        refusal = on_one_line(self.settings.endpoint.secret.redact(refusal), LONGEST_REFUSAL)
        entries = tuple(self.log.entries)
        return Reply(candidates if not refusal else (), self._usage(), refusal, entries)

    def _candidate(self, place: int, draft: Draft) -> Candidate | None:
        if not draft.files:
            return None
        request = self.request
        name = f"{request.kind.value}-{request.lineage}.{request.step}.{request.replicate}"
        return Candidate(
            name if request.wanted == 1 else f"{name}.{place + 1}",
            files={path: FileState(text.encode("utf-8")) for path, text in draft.files.items()},
            parent=request.about[place].digest if place < len(request.about) else None,
            origin=f"chat: {self.settings.model}",
            note=draft.note,
        )

    def _usage(self) -> Usage:
        """Return the usage of all answers; a missing token count makes the cost unknown."""
        price, earlier = self.settings.price, self.earlier.usage if self.earlier else Usage()
        new = self.answers[1:] if self.is_recalled else self.answers
        costs = [cost_usd(price, answer.prompt_tokens, answer.completion_tokens) for answer in new]
        costs.append(earlier.cost_usd)
        if self.log.has_lost_answers:
            costs.append(cost_usd(price, None, None))
        priced = [cost for cost in costs if cost is not None]
        return Usage(
            self.settings.model,
            earlier.prompt_tokens + sum(answer.prompt_tokens or 0 for answer in new),
            earlier.completion_tokens + sum(answer.completion_tokens or 0 for answer in new),
            math.fsum(priced) if len(priced) == len(costs) else None,
            earlier.seconds + time.monotonic() - self.started_s,
        )


def _unusable(problems: Sequence[str]) -> str:
    return f"the answer can't be used: {'; '.join(problems)}"


def _find_problems(drafts: Sequence[Draft]) -> list[str]:
    """Return what is wrong with an answer without any candidate; nothing if there is one.

    Of several drafts, one that can be used is enough: the others are requested separately.
    """
    if any(draft.files for draft in drafts):
        return []
    return list(dict.fromkeys(problem for draft in drafts for problem in draft.problems))

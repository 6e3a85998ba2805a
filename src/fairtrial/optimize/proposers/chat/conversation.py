"""One request to a model: a question, its answer, at most one complaint, and what came of it.

An answer that is complained about is paid for. It is kept before the complaint goes out, as the
reply that it would be if there were no more to come, so that nobody has to ask for it again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.arena import Candidate, FileState
from fairtrial.core import LabError, on_one_line
from fairtrial.llm import Answer, Dialect, Endpoint, Log, Price, Refused, answer_in, ask, cost_usd
from fairtrial.optimize.proposals import Brief, Reply, Request, Usage
from fairtrial.optimize.proposers.chat.answers import Draft, read_answer
from fairtrial.optimize.proposers.chat.prompts import Form, Message, write_complaint

LONGEST_REFUSAL = 1_000
Keep = Callable[[Reply], None]
"""Takes what has come so far; returns when it is safe."""


def keep_nothing(reply: Reply) -> None:
    """Where nobody goes on if this process ends."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a model is asked.

    model: its name
    endpoint: where it is
    form: how it is to answer
    price: what its tokens cost, if that is known
    make_body: what is sent, given the messages
    dialect: in which words
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

    terms: how the model is asked
    brief, request: what it is asked
    earlier: what is known of it already: an answer that somebody else has paid for
    keep: takes an answer that is about to be complained about
    log: every attempt
    answers: what the model wrote
    is_recalled: whether the first of them is the one that was known
    started_s: when it began
    """

    terms: Terms
    brief: Brief
    request: Request
    earlier: Reply | None = None
    keep: Keep = keep_nothing
    log: Log = field(default_factory=Log)
    answers: list[Answer] = field(default_factory=list)
    is_recalled: bool = False
    started_s: float = field(default_factory=time.monotonic)

    async def hold(self, messages: list[Message]) -> Reply:
        """Ask, and once more if the answer can't be used."""
        try:
            drafts = self._recall()
            if drafts is None:
                drafts = await self._ask(messages)
        except Refused as refused:
            return self._reply(refusal=str(refused))
        problems = _complaints(drafts)
        if problems:
            if not self.is_recalled:
                self.keep(self._reply(refusal=_unusable(problems)))
            told = write_complaint(problems, self.request.wanted)
            # An endpoint may insist on a text.
            wrote = self.answers[-1].text or "(nothing)"
            more = [{"role": "assistant", "content": wrote}, {"role": "user", "content": told}]
            try:
                drafts = await self._ask([*messages, *more])
            except (Refused, LabError) as error:
                # The first answer is paid for: what came of it is told, not lost.
                return self._reply(refusal=f"{_unusable(problems)}; asked once more: {error}")
            problems = _complaints(drafts)
        if problems:
            return self._reply(refusal=_unusable(problems))
        return self._reply(drafts)

    def _recall(self) -> list[Draft] | None:
        """What the answer that is known says; None if there is none, or none that we can read."""
        answer = None if self.earlier is None else answer_in(self.earlier.exchange)
        if self.earlier is None or answer is None:
            return None
        self.is_recalled = True
        self.log.entries.extend(self.earlier.exchange)
        return self._read(answer)

    async def _ask(self, messages: list[Message]) -> list[Draft]:
        terms, number = self.terms, len(self.answers)
        seed = self.request.seed + number
        body = terms.make_body(messages)
        return self._read(await ask(terms.endpoint, body, seed, self.log, terms.dialect))

    def _read(self, answer: Answer) -> list[Draft]:
        terms, secret = self.terms, self.terms.endpoint.secret
        self.answers.append(answer)
        if answer.refusal or answer.finish == "content_filter":
            raise Refused(f"the model refuses: {answer.refusal or answer.finish}")
        if secret.is_in(answer.text):
            raise Refused(f"the answer holds the value of {secret.variable}")
        is_cut = answer.finish == "length"
        drafts = read_answer(
            answer.text, self.brief.files, terms.form, self.request.wanted, is_cut=is_cut
        )
        for path, text in (item for draft in drafts for item in draft.files.items()):
            if secret.is_in(text):  # an edit keeps what the base has
                raise Refused(f"{path} holds the value of {secret.variable}: take it out of it")
        return drafts

    def _reply(self, drafts: Sequence[Draft] = (), refusal: str = "") -> Reply:
        candidates = tuple(self._candidate(place, draft) for place, draft in enumerate(drafts))
        if not refusal and not any(candidates):
            note = next((draft.note for draft in drafts if draft.note), "")
            refusal = f"the answer changes nothing: {note}".removesuffix(": ")
        refusal = on_one_line(self.terms.endpoint.secret.redact(refusal), LONGEST_REFUSAL)
        entries = tuple(self.log.entries)
        return Reply(candidates if not refusal else (), self._usage(), refusal, entries)

    def _candidate(self, place: int, draft: Draft) -> Candidate | None:
        if not draft.files:
            return None
        request = self.request
        name = f"{request.kind.value}-{request.line}.{request.step}.{request.replicate}"
        return Candidate(
            name if request.wanted == 1 else f"{name}.{place + 1}",
            files={path: FileState(text.encode("utf-8")) for path, text in draft.files.items()},
            parent=request.about[place].digest if place < len(request.about) else None,
            origin=f"chat: {self.terms.model}",
            note=draft.note,
        )

    def _usage(self) -> Usage:
        """All answers together; a number that a server didn't tell makes the cost unknown."""
        price, earlier = self.terms.price, self.earlier.usage if self.earlier else Usage()
        new = self.answers[1:] if self.is_recalled else self.answers
        costs = [cost_usd(price, each.prompt_tokens, each.completion_tokens) for each in new]
        costs.append(earlier.cost_usd)
        if self.log.has_lost_answers:
            costs.append(cost_usd(price, None, None))
        known = [cost for cost in costs if cost is not None]
        return Usage(
            self.terms.model,
            earlier.prompt_tokens + sum(each.prompt_tokens or 0 for each in new),
            earlier.completion_tokens + sum(each.completion_tokens or 0 for each in new),
            math.fsum(known) if len(known) == len(costs) else None,
            earlier.seconds + time.monotonic() - self.started_s,
        )


def _unusable(problems: Sequence[str]) -> str:
    return f"the answer can't be used: {'; '.join(problems)}"


def _complaints(drafts: Sequence[Draft]) -> list[str]:
    """What is wrong with an answer without any candidate; nothing, if there is one.

    Of several drafts, one that can be used is enough: the others are asked for by themselves.
    """
    if any(draft.files for draft in drafts):
        return []
    return list(dict.fromkeys(problem for draft in drafts for problem in draft.problems))

"""One request to a model: a question, its answer, and at most one complaint about that answer.

An unusable answer is paid for. Before the complaint is sent, it is kept as the reply that it would
be if no other answer came, so that it isn't asked for again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairtrial.arena import Candidate, FileState
from fairtrial.core import LabError, on_one_line
from fairtrial.llm import ChatAnswer, ChatClient, RequestLog, RequestRefused
from fairtrial.optimize.proposals import Brief, Reply, Request, Usage
from fairtrial.optimize.proposer import KeepPart
from fairtrial.optimize.proposers.chat.answers import Draft, read_answer
from fairtrial.optimize.proposers.chat.prompts import Form, Message, write_complaint

LONGEST_REFUSAL = 1_000


def keep_nothing(reply: Reply) -> None:
    """Drop a partial reply: for callers that don't resume."""


@dataclass(slots=True)
class Conversation:
    """One request, from the question to the reply.

    client: asks the model
    form: the form of its answers
    brief, request: what it is asked
    earlier: an unusable answer that an earlier attempt has paid for, if there is one
    keep: stores an unusable answer before the model is asked once more
    log: every attempt
    answers: the model's answers
    is_recalled: whether the first of them is `earlier`
    started_s: when it began
    """

    client: ChatClient
    form: Form
    brief: Brief
    request: Request
    earlier: Reply | None = None
    keep: KeepPart = keep_nothing
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
        if self.earlier is None:
            return None
        log = RequestLog(list(self.earlier.exchange))
        answer = log.read_last_answer()
        if answer is None:
            return None
        self.is_recalled, self.log = True, log
        return self._read(answer)

    async def _ask(self, messages: list[Message]) -> list[Draft]:
        seed = self.request.seed + len(self.answers)
        return self._read(await self.client.ask(messages, seed=seed, log=self.log))

    def _read(self, answer: ChatAnswer) -> list[Draft]:
        secret = self.client.secret
        self.answers.append(answer)
        if answer.refusal or answer.finish == "content_filter":
            raise RequestRefused(f"the model refuses: {answer.refusal or answer.finish}")
        if secret.is_in(answer.text):
            raise RequestRefused(f"the answer holds the value of {secret.variable}")
        is_cut = answer.finish == "length"
        drafts = read_answer(
            answer.text, self.brief.files, self.form, self.request.wanted, is_cut=is_cut
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
        refusal = on_one_line(self.client.secret.redact(refusal), LONGEST_REFUSAL)
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
            origin=f"chat: {self.client.options.model}",
            note=draft.note,
        )

    def _usage(self) -> Usage:
        """Return the usage of all answers; a missing token count makes the cost unknown."""
        options, earlier = self.client.options, self.earlier.usage if self.earlier else Usage()
        new = self.answers[1:] if self.is_recalled else self.answers
        costs = [options.cost_usd(answer.prompt_tokens, answer.completion_tokens) for answer in new]
        costs.append(earlier.cost_usd)
        if self.log.has_lost_answers:
            costs.append(options.cost_usd(None, None))
        priced = [cost for cost in costs if cost is not None]
        return Usage(
            self.client.options.model,
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

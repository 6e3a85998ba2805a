"""The proposer `chat`: a language model behind an OpenAI-compatible chat-completions endpoint."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fairtrial.core import Mistake
from fairtrial.llm import ChatClient, ChatOptions
from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind, Usage
from fairtrial.optimize.proposer import KeepPart, PreflightContext, Proposer, run_checks
from fairtrial.optimize.proposers.chat.conversation import Conversation, keep_nothing
from fairtrial.optimize.proposers.chat.prompts import Form, write_messages
from fairtrial.study import spell_cost


@dataclass(frozen=True, slots=True)
class Chat(ChatOptions, Proposer):
    """A language model, asked by chat completions for whole files or search/replace blocks.

    Its options are those of `ChatOptions`, and two more.

    answer: `whole_file`: the complete text of each changed file; `search_replace`: blocks with the
        lines to be replaced, which is shorter for large files and fails more often
    longest_prompt: how many characters a prompt may have; a longer one is refused, not sent
    """

    answer: Form = "whole_file"
    longest_prompt: int = 400_000

    name = "chat"
    can_batch = True
    incidental_options: ClassVar[frozenset[str]] = frozenset(
        (
            *("timeout_s", "retries", "backoff_s", "longest_wait_s", "most_at_once", "stream"),
            *("key_variable", "prices", "requests_per_minute", "tokens_per_minute"),
        )
    )

    def _mistakes(self) -> Iterator[Mistake]:
        yield from ChatOptions._mistakes(self)
        if self.longest_prompt < 1:
            yield Mistake(("longest_prompt",), f"must be 1 or more, got {self.longest_prompt}")

    def preflight(self, context: PreflightContext) -> None:
        """Raise a `StudyError` for a ceiling that can't be kept, or if the key isn't set."""
        run_checks(lambda: self._check_ceiling(context.max_cost_usd), self.require_key)

    async def probe(self) -> None:
        """Raise a `LabError` if the endpoint can't be reached, or rejects the key."""
        await ChatClient.of_event_loop(self).probe()

    def _check_ceiling(self, max_cost_usd: float | None) -> None:
        if max_cost_usd is not None:
            self.require_price(spell_cost(max_cost_usd))

    def estimate(self, brief: Brief) -> Usage:
        """Return roughly what a first reply takes, if it is as long as the largest file."""
        messages = write_messages(brief, Request(RequestKind.INITIAL, 0, 0), self.answer)
        prompt = _estimate_tokens(sum(len(message["content"]) for message in messages))
        longest = max(map(len, brief.files.values()), default=0)
        answer = _estimate_tokens(longest) + 200
        if self.max_tokens is not None:
            answer = min(answer, self.max_tokens)
        return Usage(self.model, prompt, answer, self.cost_usd(prompt, answer))

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Ask the model; ask once more if its answer can't be used."""
        return await self.propose_in_parts(brief, request, None, keep_nothing)

    async def propose_in_parts(
        self, brief: Brief, request: Request, earlier: Reply | None, keep: KeepPart
    ) -> Reply:
        """Ask the model; keep a first answer that can't be used before asking once more."""
        messages = write_messages(brief, request, self.answer)
        size = sum(len(message["content"]) for message in messages)
        if size > self.longest_prompt:
            return Reply(
                usage=Usage(self.model),
                refusal=f"the prompt has {size:,} characters, more than `longest_prompt` "
                f"({self.longest_prompt:,}): narrow `editable` to what matters",
            )
        client = ChatClient.of_event_loop(self)
        async with client.seat():
            conversation = Conversation(client, self.answer, brief, request, earlier, keep)
            return await conversation.hold(messages)


def _estimate_tokens(characters: int) -> int:
    """Return about how many tokens code of this length has: some three characters each."""
    return math.ceil(characters / 3)

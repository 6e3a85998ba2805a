"""A model as an agent asks it during a run: answers are recorded, paid for once, and counted.

Each answer becomes a journal entry with its cost before the agent gets it. A run that is attempted
again takes the answers of earlier attempts from there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fairtrial.llm import (
    ChatAnswer,
    ChatClient,
    ChatOptions,
    RequestLog,
)
from fairtrial.study.agents.images import add_images, without_image_data
from fairtrial.study.agents.transcript import message_event, model_call_event
from fairtrial.study.event_loop import resolve

if TYPE_CHECKING:
    from fairtrial.study.agents.journal import Journal
    from fairtrial.study.model.runs import RunSpec

ENTRY = "model_answer"


class ModelUser(Protocol):
    """What a model is asked for: a task, or the evaluation of a run."""

    run_spec: RunSpec
    journal: Journal

    def record(self, event: Mapping[str, Any]) -> None: ...


class TaskModel:
    """A model that a run's agent asks; made by `Task.llm`.

    options: how it is asked
    """

    entry_kind = ENTRY
    """The kind of journal entry that keeps an answer."""

    def __init__(self, options: ChatOptions, task: ModelUser) -> None:
        self.options = options
        self._task = task
        self._shown: list[dict[str, Any]] = []
        self._counts: dict[str, int] = {}
        self._earlier = {
            str(entry.data["key"]): entry.data["answer"]
            for entry in task.journal.entries()
            if entry.kind == self.entry_kind
        }

    async def ask(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
        images: Sequence[str | Path] = (),
    ) -> ChatAnswer:
        """Return the model's answer; its cost counts against the study's ceilings.

        messages: the conversation so far, or the text of a single question
        tools: the tools that the model may call: `name`, `description`, `parameters`
        schema: the JSON schema that the answer must follow
        on_text: called with each piece of a streamed answer
        images: files or addresses of images, which are added to the last message

        Messages and answer are recorded in the run's transcript. Raises `RequestRefused` if the
        endpoint refuses the request, and `LabError` if it gives no answer, which breaks the run.
        """
        asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        conversation = add_images(asked, images, None)
        self._record_new(conversation)
        started, log = time.monotonic(), RequestLog()
        key, seed = self._key(self.options.make_body(conversation, tools, schema))
        if key in self._earlier:
            answer = ChatAnswer.from_dict(self._earlier[key], is_cached=True)
        else:
            client = ChatClient.of_event_loop(self.options)
            replicate = self._task.run_spec.replicate
            async with client.seat():
                answer = await client.ask(
                    conversation,
                    seed=seed,
                    log=log,
                    replicate=replicate,
                    tools=tools,
                    schema=schema,
                    on_text=on_text,
                )
            await self._keep(key, answer)
        self._record_answer(answer, time.monotonic() - started, max(len(log.entries), 1))
        return answer

    def ask_sync(self, messages: str | Sequence[Mapping[str, Any]], **arguments: Any) -> ChatAnswer:
        """Return the model's answer to an agent that isn't async; otherwise as `ask`."""
        answer: ChatAnswer = resolve(self.ask(messages, **arguments))
        return answer

    def cost_of(self, answer: ChatAnswer) -> float | None:
        """Return what an answer cost; None if the price or a token count isn't known."""
        if answer.is_cached:
            return 0.0
        return self.options.cost_usd(answer.prompt_tokens, answer.completion_tokens)

    def _key(self, body: Mapping[str, Any]) -> tuple[str, int]:
        """Return the key of the next answer to a request, and its seed.

        An agent that asks the same twice wants two answers.
        """
        spec = self._task.run_spec
        same = self.options.answer_key(body, spec.seed, spec.replicate)
        count = self._counts[same] = self._counts.get(same, -1) + 1
        seed = spec.seed + count
        return self.options.answer_key(body, seed, spec.replicate), seed

    async def _keep(self, key: str, answer: ChatAnswer) -> None:
        facts = {"key": key, "answer": answer.as_dict()}
        paid = not answer.is_cached
        # In a thread: it returns when the entry is on disk, and other runs go on meanwhile.
        await asyncio.to_thread(
            self._task.journal.append,
            self.entry_kind,
            facts,
            cost_usd=self.cost_of(answer),
            input_tokens=(answer.prompt_tokens or 0) if paid else 0,
            output_tokens=(answer.completion_tokens or 0) if paid else 0,
        )

    def _record_new(self, conversation: list[dict[str, Any]]) -> None:
        """Record the messages that the transcript doesn't have yet."""
        known = len(self._shown)
        new = conversation[known:] if conversation[:known] == self._shown else conversation
        for message in new:
            if message["role"] == "assistant" and message.get("tool_calls"):
                calls = [_plain_call(call) for call in message["tool_calls"]]
            else:
                calls = []
            self._task.record(
                message_event(
                    message["role"],
                    without_image_data(message.get("content")),
                    tool_calls=calls,
                    tool_call_id=message.get("tool_call_id"),
                    name=message.get("name"),
                )
            )
        self._shown = conversation

    def _record_answer(self, answer: ChatAnswer, seconds: float, attempts: int) -> None:
        model = answer.model or self.options.model
        self._task.record(
            model_call_event(
                model,
                endpoint=self.options.host,
                input_tokens=answer.prompt_tokens,
                output_tokens=answer.completion_tokens,
                cost_usd=self.cost_of(answer),
                seconds=seconds,
                cached=answer.is_cached,
                finish_reason=answer.finish,
                attempts=attempts,
            )
        )
        calls = [asdict(call) for call in answer.tool_calls]
        text = answer.text or answer.refusal
        self._task.record(message_event("assistant", text, tool_calls=calls, model=model))
        self._shown = [*self._shown, as_message(answer)]


def as_message(answer: ChatAnswer) -> dict[str, Any]:
    """Return an answer as the message that continues its conversation."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in answer.tool_calls
        ]
    return message


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    return {
        "id": call.get("id", ""),
        "name": function.get("name", ""),
        "arguments": function.get("arguments", ""),
    }

"""The agent `chat`: a prompt template and a model, without any code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError, plugins
from fairtrial.llm import ChatAnswer, ChatOptions, RequestRefused
from fairtrial.study.agents.hooks import AgentHooks
from fairtrial.study.agents.images import add_images
from fairtrial.study.agents.models import TaskModel, as_message
from fairtrial.study.agents.output import AgentOutput
from fairtrial.study.agents.prompt_templates import fill, template_values
from fairtrial.study.agents.task import Task
from fairtrial.study.agents.tools import Tool, call_tool
from fairtrial.study.model.study import RunBudget
from fairtrial.study.protocols import Problem

ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class ChatAgent(ChatOptions, AgentHooks):
    """A language model that is asked by a prompt template; its text is the answer.

    Its options are those of `ChatOptions`, and these. Templates have placeholders for the problem
    and the factors: `{brief}`, `{question}`, `{style}`.

    system: the template of the system message; none if empty
    prompt: the template of the last message
    messages: templates of messages between the two: `role` and `content`
    images: images that are added to the prompt: templates of paths, relative to the study's folder,
        or of addresses; a placeholder that stands for a list adds all of it
    examples: a JSONL file with examples that are put before the prompt; each line has `input` and
        `output`, or `messages`. Relative to the study's folder
    most_examples: how many of them are used, from the first; all if not given
    tools: functions that the model may call, as `module:callable`
    most_turns: how many answers a run may take: a model that calls tools gives several
    answer: a regular expression that finds the answer in the text: its group 1, or all of it; the
        last match counts. Without one the answer is the whole text
    schema: a JSON schema that the text must follow; the output is then what it holds
    folder: where `examples` and `tools` are; by default the study's folder
    """

    most_at_once: int = 1_000
    system: str = ""
    prompt: str = "{brief}"
    messages: tuple[Mapping[str, Any], ...] = ()
    images: tuple[str, ...] = ()
    examples: str = ""
    most_examples: int | None = None
    tools: tuple[str, ...] = ()
    most_turns: int = 10
    answer: str = ""
    schema: Mapping[str, Any] | None = None
    folder: Path | None = None

    def _mistakes(self) -> Iterator[Mistake]:
        yield from ChatOptions._mistakes(self)
        if self.most_turns < 1:
            yield Mistake(("most_turns",), f"must be 1 or more, got {self.most_turns}")
        for index, message in enumerate(self.messages):
            if message.get("role") not in ROLES or "content" not in message:
                hint = f"`role` is one of {', '.join(ROLES)}"
                yield Mistake(("messages", index), "must have `role` and `content`", hint)
        try:
            re.compile(self.answer)
        except re.error as error:
            yield Mistake(("answer",), f"is no regular expression: {error}")

    def in_folder(self, folder: Path | None) -> ChatAgent:
        """Return the agent with paths relative to the study's folder."""
        return self if self.folder is not None else replace(self, folder=folder)

    def check_start(self, budget: RunBudget) -> None:
        """Raise `StudyError` if the key isn't set, a ceiling can't be kept, or a file is wrong."""
        self.require_key()
        if budget.max_cost_usd is not None:
            self.require_price(f"${budget.max_cost_usd:g}")
        self._read_examples()
        self._load_tools()

    def check_task(self, problem: Problem, factors: Mapping[str, Any]) -> None:
        """Raise `StudyError` for a placeholder that stands for nothing."""
        self._make_messages(problem, factors)

    async def run(self, task: Task) -> AgentOutput:
        """Ask the model, call the tools that it asks for, and return its last answer."""
        tools = {tool.name: tool for tool in self._load_tools()}
        messages = self._make_messages(task.problem, task.factors)
        model = TaskModel(self, task)
        for _ in range(self.most_turns):
            answer = await model.ask(
                messages,
                tools=[tool.description for tool in tools.values()],
                schema=self.schema,
            )
            if not (answer.tool_calls and tools):
                return self._read(answer)
            messages = [*messages, as_message(answer)]
            for call in answer.tool_calls:
                messages.append(await call_tool(tools, call, task))
        return self._failed(answer, f"the model still called tools after {self.most_turns} turns")

    def _make_messages(self, problem: Any, factors: Mapping[str, Any]) -> list[dict[str, Any]]:
        values = template_values(problem, factors)
        system = [{"role": "system", "content": self.system}] if self.system else []
        parts = [*system, *self.messages, {"role": "user", "content": self.prompt}]
        try:
            filled = [dict(fill(part, values)) for part in parts]
        except StudyError as error:
            raise StudyError([mistake.under(("prompt",)) for mistake in error.mistakes]) from None
        try:
            images = self._find_images(values)
        except StudyError as error:
            raise StudyError([mistake.under(("images",)) for mistake in error.mistakes]) from None
        filled = add_images(filled, images, self.folder)
        return [*filled[: len(system)], *self._read_examples(), *filled[len(system) :]]

    def _find_images(self, values: Mapping[str, Any]) -> list[str]:
        paths: list[str] = []
        for image in fill(list(self.images), values, keeps_types=True):
            paths += map(str, image) if isinstance(image, (list, tuple)) else [str(image or "")]
        return [image for image in paths if image]

    def _read_examples(self) -> list[dict[str, Any]]:
        """Return the messages of the examples; raises `StudyError` if the file can't be read."""
        if not self.examples:
            return []
        path = (self.folder or Path()) / self.examples
        try:
            lines = path.read_text("utf-8").splitlines()
            rows = [json.loads(line) for line in lines if line.strip()]
            return [message for row in rows[: self.most_examples] for message in _example(row)]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"{path} can't be read: {type(error).__name__}: {error}"
            hint = 'each line is JSON: {"input": "...", "output": "..."}'
            raise StudyError(Mistake(("examples",), message, hint)) from None

    def _load_tools(self) -> list[Tool]:
        return [
            Tool.from_function(plugins.load_reference(reference, self.folder))
            for reference in self.tools
        ]

    def _read(self, answer: ChatAnswer) -> AgentOutput:
        if answer.refusal or answer.finish == "content_filter":
            raise RequestRefused(f"the model refuses: {answer.refusal or answer.finish}")
        if answer.finish == "length":
            return self._failed(answer, "the answer was cut off at `max_tokens`")
        if self.schema is not None:
            try:
                value = json.loads(answer.text)
            except ValueError:
                return self._failed(answer, "the answer is not JSON")
            output = value if isinstance(value, dict) else {"answer": value}
            return AgentOutput(output, metadata=self._metadata(answer))
        text = answer.text.strip()
        if self.answer:
            matches = list(re.finditer(self.answer, text))
            if not matches:
                return self._failed(answer, f"the text has no match for `answer` ({self.answer})")
            text = (matches[-1][1] if matches[-1].re.groups else matches[-1][0]) or ""
        output = {"text": answer.text, "answer": text.strip()}
        return AgentOutput(output, metadata=self._metadata(answer))

    def _failed(self, answer: ChatAnswer, reason: str) -> AgentOutput:
        metadata = self._metadata(answer)
        return AgentOutput({"text": answer.text}, metadata=metadata, success=False, error=reason)

    def _metadata(self, answer: ChatAnswer) -> dict[str, Any]:
        name = answer.model or self.model
        return {"model_name": name, "model_provider": self.host, "agent_kind": "chat"}


def _example(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "messages" in row:
        return [{"role": item["role"], "content": item["content"]} for item in row["messages"]]
    return [
        {"role": "user", "content": str(row["input"])},
        {"role": "assistant", "content": str(row["output"])},
    ]

"""The agent `http`: a service that is sent JSON and answers with JSON, without any code."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.llm import service
from fairtrial.study.agents import answer_reading
from fairtrial.study.agents.hooks import AgentHooks
from fairtrial.study.agents.output import BUDGETED_METRICS, AgentOutput
from fairtrial.study.agents.prompt_templates import fill, template_values
from fairtrial.study.agents.task import Task
from fairtrial.study.agents.transcript import message_event, model_call_event
from fairtrial.study.model.study import RunBudget
from fairtrial.study.protocols import Problem

ENTRY = "http_answer"


@dataclass(frozen=True, slots=True)
class HttpAgent(service.ServiceOptions, AgentHooks):
    """A service that is asked by a template; what it answers is the output.

    Its options are those of `ServiceOptions`, and these. Texts in `body` have placeholders for the
    problem and the factors, as the prompts of `chat` have: `{brief}`, `{question}`, `{style}`. A
    text that is nothing but a placeholder takes the value as it is: a number stays a number.

    body: what is sent: JSON
    answer_path: where the answer is in the response; the whole response if empty
    answer: a regular expression that finds the answer there: its group 1, or all of it
    metrics: where figures are in the response, by name: `cost_usd`, `input_tokens`,
        `output_tokens`, which count against ceilings, or any others
    cost_usd: what one request costs, if the response doesn't say it; 0 for a service of your own
    model: the model's name in tables
    folder: the study's folder
    """

    body: Mapping[str, Any] = field(default_factory=lambda: {"prompt": "{brief}"})
    answer_path: str = ""
    answer: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)
    cost_usd: float | None = None
    model: str = ""
    folder: Path | None = None

    def _mistakes(self) -> Iterator[Mistake]:
        yield from service.ServiceOptions._mistakes(self)
        yield from answer_reading.list_mistakes(self.answer_path, self.answer, self.metrics)
        try:
            json.dumps(self.body, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError):
            message = "can't be sent: JSON has no such value"
            yield Mistake(("body",), message, "put dates and .nan into quotes")
        if self.cost_usd is not None and not 0 <= self.cost_usd < float("inf"):
            yield Mistake(("cost_usd",), f"must be 0 or more, got {self.cost_usd:g}")

    def check_start(self, budget: RunBudget) -> None:
        """Raise `StudyError` if the key isn't set, or a ceiling can't be kept."""
        self.require_key()
        knows_cost = self.cost_usd is not None or "cost_usd" in self.metrics
        if budget.max_cost_usd is not None and not knows_cost:
            message = f"nobody knows what {self.host} costs, so that a ceiling can't be kept"
            hint = "give `cost_usd` of a request, or `metrics: {cost_usd: PATH}` into the response"
            raise StudyError(Mistake(("cost_usd",), message, hint))

    def check_task(self, problem: Problem, factors: Mapping[str, Any]) -> None:
        """Raise `StudyError` for a placeholder that stands for nothing."""
        self._fill(problem, factors)

    async def run(self, task: Task) -> AgentOutput:
        """Ask the service, and return its answer."""
        body = self._fill(task.problem, task.factors)
        text = json.dumps(body, ensure_ascii=False, default=str)
        task.record(message_event("user", text))
        earlier = _find_earlier(task, text)
        if earlier is not None:
            return self._read(*earlier)
        started = time.monotonic()
        answer = await service.ask_service(self, body, seed=task.seed)
        figures = answer_reading.read_metrics(
            answer_reading.read_documents(answer.text), self.metrics
        )
        cost = figures.get("cost_usd", self.cost_usd)
        task.journal.append(
            ENTRY,
            {"asked": text, "status": answer.status, "text": answer.text},
            cost_usd=_amount(cost),
            input_tokens=int(_amount(figures.get("input_tokens")) or 0),
            output_tokens=int(_amount(figures.get("output_tokens")) or 0),
        )
        task.record(
            model_call_event(
                self.model or self.host,
                endpoint=self.host,
                input_tokens=_whole(figures.get("input_tokens")),
                output_tokens=_whole(figures.get("output_tokens")),
                cost_usd=_amount(cost),
                seconds=time.monotonic() - started,
                attempts=answer.attempts,
            )
        )
        output = self._read(answer.status, answer.text)
        task.record(message_event("assistant", answer.text, model=self.model or None))
        return output

    def _fill(self, problem: Any, factors: Mapping[str, Any]) -> Any:
        try:
            return fill(self.body, template_values(problem, factors), keeps_types=True)
        except StudyError as error:
            raise StudyError([mistake.under(("body",)) for mistake in error.mistakes]) from None

    def _read(self, status: int, text: str) -> AgentOutput:
        documents = answer_reading.read_documents(text)
        metrics = answer_reading.read_metrics(documents, self.metrics)
        own = {name: value for name, value in metrics.items() if name not in BUDGETED_METRICS}
        whole = documents[0] if len(documents) == 1 else text
        metadata = {"agent_kind": "http", "model_name": self.model or None, "status": status}
        if status >= 400:
            error = f"{self.host} refused the request: status {status}"
            return AgentOutput({"response": whole}, own, (), (), metadata, False, error)
        try:
            answer = answer_reading.read_answer(text, documents, self.answer_path, self.answer)
        except ValueError as error:
            reason = f"the response has no answer: {error}"
            return AgentOutput({"response": whole}, own, (), (), metadata, False, reason)
        return AgentOutput({"answer": answer, "response": whole}, own, metadata=metadata)


def _find_earlier(task: Task, asked: str) -> tuple[int, str] | None:
    """Return the answer that an earlier attempt at the run got and paid for."""
    for entry in task.journal.entries():
        if entry.kind == ENTRY and entry.data["asked"] == asked and entry.data["status"] < 400:
            return int(entry.data["status"]), str(entry.data["text"])
    return None


def _amount(value: Any) -> float | None:
    """Return a number of 0 or more; None for anything else a service may say."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e12 else None


def _whole(value: Any) -> int | None:
    amount = _amount(value)
    return None if amount is None else int(amount)

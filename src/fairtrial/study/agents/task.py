"""The task that an agent is given for one run."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtrial.core import events
from fairtrial.llm import ChatOptions
from fairtrial.study.agents.events import EventStream, make_event, read_event
from fairtrial.study.agents.journal import Journal
from fairtrial.study.agents.models import TaskModel
from fairtrial.study.agents.workspace import Workspace
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunSpec


def _ignore(data: bytes) -> None:
    """Discard an event."""


class Task:
    """One run, as its agent sees it.

    problem: what to solve: a `ProblemPacket`, or any other `Problem`
    condition: the run's condition
    run_spec: the run's ids, replicate and seed
    journal: durable entries of this attempt and of earlier ones
    emit_progress: called with typed progress events (`core.events.Event`), which are shown during
        the run and are not stored

    To try an agent out, make a task without `events`, `workspace` and `journal`: events are
    discarded then, the workspace is a temporary folder, and the journal is kept in memory.
    """

    __slots__ = (
        "_events",
        "_rng",
        "_workspace",
        "condition",
        "emit_progress",
        "journal",
        "problem",
        "run_spec",
    )

    def __init__(
        self,
        problem: Any,
        condition: Condition,
        run_spec: RunSpec,
        events: EventStream | None = None,
        workspace: Workspace | None = None,
        journal: Journal | None = None,
        emit_progress: events.Emit = events.ignore_event,
    ) -> None:
        self.problem = problem
        self.condition = condition
        self.run_spec = run_spec
        self.journal = journal or Journal()
        self.emit_progress = emit_progress
        self._events = events or EventStream(_ignore)
        self._workspace = workspace or Workspace(None, run_spec.run_id, 1)
        self._rng: random.Random | None = None

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.run_spec.seed

    @property
    def factors(self) -> Mapping[str, Any]:
        """The values of the factors under this condition."""
        return self.condition.factor_assignments

    @property
    def rng(self) -> random.Random:
        """A random number generator seeded with the run's seed: the same under every executor."""
        if self._rng is None:
            self._rng = random.Random(self.run_spec.seed)
        return self._rng

    @property
    def workspace(self) -> Path:
        """A new, empty folder for this attempt at the run.

        It is kept in the study's output directory. Without an output directory it is a temporary
        folder, which is removed when the run is over.
        """
        return self._workspace.path

    def llm(self, base_url: str, model: str, **options: Any) -> TaskModel:
        """Return a model that the agent can ask; its answers are recorded and their cost counted.

        `answer = await task.llm(url, "gpt-5-mini", key_variable="OPENAI_API_KEY").ask("...")`;
        agents that aren't async call `ask_sync`.

        base_url, model, options: the options of `fairtrial.llm.ChatOptions`
        """
        return TaskModel(ChatOptions(base_url, model, **{"most_at_once": 1_000, **options}), self)

    def emit(self, event_type: str, text: str = "", actor_id: str = "agent", **meta: Any) -> None:
        """Record an event as it happens; it is kept even if the run crashes later.

        event_type: the type of event: `step`, `tool_call`, ...
        text: its text
        actor_id: the id of the actor
        meta: further facts. `tool_name`, `step_id`, `trial_id`, `evaluation_id`, `session_id`,
            `record_id`, `level` and `timestamp` have columns of their own.
        """
        self._events.add(make_event(event_type, text, actor_id, meta))

    def record(self, event: Mapping[str, Any]) -> None:
        """Record an event given as a mapping, such as those of `fairtrial.study.agents`.

        `message_event`, `tool_call_event`, `tool_result_event` and `model_call_event` make the
        events of a transcript, which `fairtrial show` prints as a conversation.
        """
        self._events.add(read_event(event, "event"))

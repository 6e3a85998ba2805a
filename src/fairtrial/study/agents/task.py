"""A task: all that an agent is given for one run."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtrial.core import Emit, ignore_event
from fairtrial.study.agents.events import EventStream, make_event
from fairtrial.study.agents.journal import Journal
from fairtrial.study.agents.workspace import Workspace
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunSpec


def _ignore(data: bytes) -> None:
    """Where events go that nobody keeps."""


class Task:
    """One run, as its agent sees it.

    problem: what to solve: a `ProblemPacket`, or any other `Problem`
    condition: the condition that the run happens under
    run_spec: the run's ids, replicate and seed

    journal: entries that are safe once they are appended, and those of earlier attempts
    emit_progress: takes typed progress events (`fairtrial.core.events`), which are shown while the
        run goes on and not stored

    Without `events`, `workspace` and `journal` a task can be made by hand, to try an agent out:
    events go nowhere then, the workspace is a temporary folder, and the journal is kept in memory.
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
        emit_progress: Emit = ignore_event,
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
        """The factors' values under this condition."""
        return self.condition.factor_assignments

    @property
    def rng(self) -> random.Random:
        """Random numbers of the run's own, from its seed: the same under every executor."""
        if self._rng is None:
            self._rng = random.Random(self.run_spec.seed)
        return self._rng

    @property
    def workspace(self) -> Path:
        """A new, empty folder; each attempt at a run has its own.

        It is kept in the study's output directory. A study without one gives a temporary folder,
        which is gone when the run is over.
        """
        return self._workspace.path

    def emit(self, event_type: str, text: str = "", actor_id: str = "agent", **meta: Any) -> None:
        """Tell what happens, as it happens; it is kept even if the run then crashes.

        event_type: what happens: `step`, `tool_call`, ...
        text: what there is to read
        actor_id: who does it
        meta: anything else. `tool_name`, `step_id`, `trial_id`, `evaluation_id`, `session_id`,
            `record_id`, `level` and `timestamp` have columns of their own.
        """
        self._events.add(make_event(event_type, text, actor_id, meta))

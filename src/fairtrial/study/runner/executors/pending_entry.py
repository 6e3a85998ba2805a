"""Journal entries that runs in this process wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fairtrial.study.model.runs import Assignment, Noted, NotedTogether


@dataclass(eq=False, slots=True)
class PendingEntry:
    """A journal entry that a run waits for: until it is durable, or refused.

    data: the packed entry
    is_durable: the answer
    is_answered: set once there is an answer
    """

    data: bytes
    is_durable: bool = False
    is_answered: threading.Event = field(default_factory=threading.Event)

    def answer(self, *, is_durable: bool) -> None:
        """Let the run continue; only the first answer counts."""
        if not self.is_answered.is_set():
            self.is_durable = is_durable
            self.is_answered.set()


def note_together(waiting: Sequence[tuple[Assignment, PendingEntry]]) -> Iterator[NotedTogether]:
    """Report the entries that wait, all at once, and let their runs continue after that.

    waiting: the entries, each with the assignment whose run waits for it
    """
    if not waiting:
        return
    yield NotedTogether(
        tuple(
            Noted(assignment.execution_index, assignment.attempt, entry.data)
            for assignment, entry in waiting
        )
    )
    for _, entry in waiting:  # the caller has stored them before it asks for the next report
        entry.answer(is_durable=True)

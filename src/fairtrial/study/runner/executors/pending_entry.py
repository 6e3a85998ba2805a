"""A journal entry that a run in this process waits for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


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

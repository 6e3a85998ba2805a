"""What tasks import from AlgoTune's base module, reduced to the registry and the constructor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TASK_REGISTRY: dict[str, type] = {}


def register_task(name: str) -> Callable[[type], type]:
    """Return a decorator that keeps a task's class under a name."""

    def register(kind: type) -> type:
        TASK_REGISTRY[name] = kind
        return kind

    return register


class Task:
    """Base class of tasks: accepts any options, and keeps none."""

    def __init__(self, **options: Any) -> None:
        self.oracle = getattr(self, "solve", None)

"""Accept function: the task's own verifier."""

from __future__ import annotations

import logging
from typing import Any

from reference import TASK


class LastMessage(logging.Handler):
    """Keeps the last message that a verifier logged: it says why a solution is wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.text = " ".join(record.getMessage().split())[:200]


def accept(args: tuple[Any], kwargs: dict[str, Any], result: Any) -> bool | str:
    """Return True, or why the task's verifier refuses a result."""
    handler = LastMessage()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        is_right = bool(TASK.is_solution(args[0], result))
    except Exception as error:  # AlgoTune counts an error of its verifier as a wrong solution
        return f"is_solution raised {type(error).__name__}: {error}"
    finally:
        root.removeHandler(handler)
    return is_right or f"is_solution refused it: {handler.text or 'without a message'}"

"""What went wrong in a run, in words that can be written down."""

from __future__ import annotations

import asyncio
import concurrent
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from fairtrial.core import Broken, LabError
from fairtrial.study.ledger.packing import Body, UnwritableError, pack
from fairtrial.study.model.runs import FailureKind, RunStatus

LONGEST_ERROR = 2_000
LONGEST_TRACE = 16_000
HEAD_OF_TRACE = 4_000
"""How much of a traceback that is too long is its beginning; the rest is its end."""
DEEPEST = 50
"""How many steps down a complaint says where it was."""
_STUDY = Path(__file__).parent.parent
_CALLING = ("call_forms", "task", "events", "journal", "output")
_MACHINERY = (
    str(_STUDY / "runner"),
    *(str(_STUDY / "agents" / f"{module}.py") for module in _CALLING),
    str(_STUDY.parent / "compat" / "keyword_arguments.py"),
    str(_STUDY / "problems"),
    str(_STUDY / "model"),
    str(Path(asyncio.__file__).parent),
    *concurrent.__path__,
)
"""Where code lies that is neither an agent's nor an evaluator's."""
_STATUS = {
    FailureKind.BROKEN: RunStatus.BROKEN,
    FailureKind.KILLED: RunStatus.BROKEN,
    FailureKind.UNWRITABLE: RunStatus.BROKEN,
    FailureKind.CANCELLED: RunStatus.PENDING,
}


def status_of(kind: FailureKind) -> RunStatus:
    """`failed` if it was the subject's doing, `broken` if not; a cancelled run is pending."""
    return _STATUS.get(kind, RunStatus.FAILED)


def kind_of(error: BaseException) -> FailureKind:
    """Whose doing an exception is."""
    if _is_wholly(error, (Broken, LabError)):
        return FailureKind.BROKEN
    if isinstance(error, UnwritableError):
        return FailureKind.UNWRITABLE
    if isinstance(error, SystemExit):
        return FailureKind.EXIT
    return FailureKind.EXCEPTION


def _is_wholly(error: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether an exception, or each one of a group, is of certain kinds."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(kinds)[1] is None
    return isinstance(error, kinds)


def describe_error(error: BaseException) -> str:
    """An exception in a line: its type and message."""
    try:
        message = str(error)
    except Exception:
        message = "(its message can't be read)"
    name = type(error).__name__
    return writable(f"{name}: {message}" if message else name, LONGEST_ERROR)


def trace_of(error: BaseException) -> str | None:
    """The traceback, from where the subject's own code begins; None if that never began."""
    trace = error.__traceback__
    while trace is not None and _is_machinery(trace):
        trace = trace.tb_next
    if trace is None:
        return None
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except Exception:  # an exception class that can't even be shown
        text = "".join(traceback.format_tb(trace))
    if len(text) > LONGEST_TRACE:
        text = f"{text[:HEAD_OF_TRACE]}\n[...]\n{text[HEAD_OF_TRACE - LONGEST_TRACE :]}"
    return writable(text, 2 * LONGEST_TRACE)


def _is_machinery(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_MACHINERY)


def writable(text: str, longest: int) -> str:
    """Text that UTF-8 can hold, and not too much of it."""
    text = text if len(text) <= longest else f"{text[: longest - 3]}..."
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def leave_out_unwritable(body: Body) -> dict[str, Any]:
    """What of a run's record can be written down; its error says what can't, and where.

    Parts are tried as deep as they lie: too deep is a reason, too.
    """
    kept: dict[str, Any] = {}
    said = [body["error_info"]] if body["error_info"] else []
    for section, value in body.items():
        if _complaint([value]) is None:
            kept[section] = value
            continue
        said.append(_find_unwritable(value, section))
        if isinstance(value, Mapping):
            kept[section] = {
                key: item for key, item in value.items() if _complaint([{key: item}]) is None
            }
        else:
            kept[section] = [item for item in _listed(value) if _complaint([[item]]) is None]
    return {**kept, "error_info": writable("; ".join(said), LONGEST_ERROR)}


def _find_unwritable(value: Any, place: str) -> str:
    """Where it is that can't be written down, and why: ``outputs.steps[3]: a value of ...``."""
    for _ in range(DEEPEST):
        for step, item in _items(value):
            if _complaint(item) is not None:
                place, value = place + step, item
                break
        else:
            break
    return f"{place}: {_complaint(value)}"


def _items(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f".{key}", item) for key, item in value.items()]
    return [(f"[{index}]", item) for index, item in enumerate(_listed(value))]


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _complaint(value: Any) -> str | None:
    """Why a value can't be written down; None if it can."""
    try:
        pack(value)
    except UnwritableError as error:
        return str(error)
    return None

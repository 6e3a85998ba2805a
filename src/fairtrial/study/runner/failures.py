"""Describe failures of runs in text that can be stored."""

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
from fairtrial.study.runner.access_errors import find_access_error

MAX_ERROR_LENGTH = 2_000
MAX_TRACE_LENGTH = 16_000
TRACE_HEAD_LENGTH = 4_000
"""How much of a traceback that is too long is kept of its beginning; the rest is its end."""
MAX_DEPTH = 50
"""How many levels down an error message locates a value."""
_STUDY = Path(__file__).parent.parent
_CALLING_MODULES = ("call_forms", "task", "events", "journal", "output")
_OWN_CODE = (
    str(_STUDY / "runner"),
    str(_STUDY / "event_loop.py"),
    *(str(_STUDY / "agents" / f"{module}.py") for module in _CALLING_MODULES),
    str(_STUDY.parent / "compat" / "keyword_arguments.py"),
    str(_STUDY / "problems"),
    str(_STUDY / "model"),
    str(Path(asyncio.__file__).parent),
    *concurrent.__path__,
)
"""The paths of code that belongs neither to an agent nor to an evaluator."""
_STATUS = {
    FailureKind.BROKEN: RunStatus.BROKEN,
    FailureKind.KILLED: RunStatus.BROKEN,
    FailureKind.REFUSED: RunStatus.BROKEN,
    FailureKind.UNWRITABLE: RunStatus.BROKEN,
    FailureKind.CANCELLED: RunStatus.PENDING,
}


def failure_status(kind: FailureKind) -> RunStatus:
    """Return `failed` if the subject caused it, else `broken`; `pending` for a cancelled run."""
    return _STATUS.get(kind, RunStatus.FAILED)


def classify_error(error: BaseException) -> FailureKind:
    """Return the kind of failure that an exception means."""
    if find_access_error(error) is not None:
        return FailureKind.REFUSED
    if _consists_of(error, (Broken, LabError)):
        return FailureKind.BROKEN
    if isinstance(error, UnwritableError):
        return FailureKind.UNWRITABLE
    if isinstance(error, SystemExit):
        return FailureKind.EXIT
    return FailureKind.EXCEPTION


def _consists_of(error: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    """Return whether an exception, or each one of a group, is of certain types."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(kinds)[1] is None
    return isinstance(error, kinds)


def describe_error(error: BaseException) -> str:
    """Return type and message of an exception in one line."""
    try:
        message = str(error)
    except Exception:
        message = "(its message can't be read)"
    name = type(error).__name__
    text = f"{name}: {message}" if message else name
    if advice := find_access_error(error):
        text = f"{text[: MAX_ERROR_LENGTH - len(advice) - 2]}; {advice}"
    return make_writable(text, MAX_ERROR_LENGTH)


def format_trace(error: BaseException) -> str | None:
    """Return the traceback from the first frame of the subject's code; None without one."""
    trace = error.__traceback__
    while trace is not None and _is_own_code(trace):
        trace = trace.tb_next
    if trace is None:
        return None
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except Exception:  # the exception's own methods may raise
        text = "".join(traceback.format_tb(trace))
    if len(text) > MAX_TRACE_LENGTH:
        text = f"{text[:TRACE_HEAD_LENGTH]}\n[...]\n{text[TRACE_HEAD_LENGTH - MAX_TRACE_LENGTH :]}"
    return make_writable(text, 2 * MAX_TRACE_LENGTH)


def _is_own_code(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_OWN_CODE)


def make_writable(text: str, longest: int) -> str:
    """Return text that can be encoded as UTF-8, cut to a maximal length."""
    text = text if len(text) <= longest else f"{text[: longest - 3]}..."
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def drop_unwritable(body: Body) -> dict[str, Any]:
    """Return a run's record without the parts that can't be stored; its error names those.

    Parts are tested at their depth, since being nested too deeply is a reason, too.
    """
    kept: dict[str, Any] = {}
    errors = [body["error_info"]] if body["error_info"] else []
    for section, value in body.items():
        if _packing_error([value]) is None:
            kept[section] = value
            continue
        errors.append(_find_unwritable(value, section))
        if isinstance(value, Mapping):
            kept[section] = {
                key: item for key, item in value.items() if _packing_error([{key: item}]) is None
            }
        else:
            kept[section] = [
                item for item in _list_items(value) if _packing_error([[item]]) is None
            ]
    return {**kept, "error_info": make_writable("; ".join(errors), MAX_ERROR_LENGTH)}


def _find_unwritable(value: Any, path: str) -> str:
    """Return where a value can't be stored, and why: ``outputs.steps[3]: a value of ...``."""
    for _ in range(MAX_DEPTH):
        for step, item in _items(value):
            if _packing_error(item) is not None:
                path, value = path + step, item
                break
        else:
            break
    return f"{path}: {_packing_error(value)}"


def _items(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f".{key}", item) for key, item in value.items()]
    return [(f"[{index}]", item) for index, item in enumerate(_list_items(value))]


def _list_items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _packing_error(value: Any) -> str | None:
    """Return why a value can't be stored; None if it can."""
    try:
        pack(value)
    except UnwritableError as error:
        return str(error)
    return None

"""Failures of tests in few words: for whoever has to mend them. PYTEST_DONT_REWRITE"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Generator

import pytest

LONGEST_MESSAGE, LONGEST_VALUE = 6_000, 500
MOST_FRAMES = 12
START = Path.cwd()
"""Where the command started; tests go elsewhere."""
INSIDE_PYTEST = tuple(
    os.path.dirname(sys.modules[name].__file__ or "") + os.sep
    for name in ("_pytest", "pluggy")
    if name in sys.modules
)


class Describer:
    """Tells failures shortly: where, the lines of code, the `E` lines, both sides of a comparison.

    In xdist's workers, too: what it adds to a report travels with it.
    """

    def __init__(self) -> None:
        self.compared: tuple[str, str] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> None:
        self.compared = (represent(left), represent(right)) if op == "==" else None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: Any) -> Generator[None, Any, None]:
        outcome = yield
        compared, self.compared = self.compared, None
        if outcome.excinfo is None and outcome.get_result().failed and call.excinfo is not None:
            report = outcome.get_result()
            # Other sorts of text (of doctests, missing fixtures) are pytest's own, and good.
            if hasattr(report.longrepr, "reprtraceback"):
                report.fairtrial = tell(call.excinfo, compared)


def tell(excinfo: Any, compared: tuple[str, str] | None) -> dict[str, str]:
    """What to add to a report; nothing if an exception of the project's can't be looked at."""
    try:
        told = {"message": describe(excinfo)}
        # An earlier comparison may have failed as expected; this one must be what was raised.
        if compared is not None and str(excinfo.value).startswith("assert "):
            told["left"], told["right"] = compared
    except Exception:
        return {}
    return told


def represent(value: object) -> str:
    """A value as text, whatever its class makes of that."""
    try:
        return shorten(repr(value), LONGEST_VALUE)
    except Exception as error:
        return f"<a {type(value).__name__} whose repr raises {type(error).__name__}>"


def describe(excinfo: Any) -> str:
    """A short traceback, without pytest's own frames, and what was raised."""
    error = excinfo.value
    if hasattr(error, "exceptions"):  # a group: only its own traceback shows all of it
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return shorten(text, LONGEST_MESSAGE)
    lines = []
    for frame, line_number in find_frames(excinfo.tb):
        file = frame.f_code.co_filename
        lines.append(f"{shorten_path(file)}:{line_number}: in {frame.f_code.co_name}")
        code = linecache.getline(file, line_number, frame.f_globals).strip()
        if code:
            lines.append(f"    {code}")
    lines.extend(f"E   {line}" for line in excinfo.exconly(tryshort=True).splitlines())
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        first = traceback.format_exception_only(type(cause), cause)[-1].strip()
        lines.append(f"after {first}")
    return shorten("\n".join(lines), LONGEST_MESSAGE)


def find_frames(trace: TracebackType) -> list[tuple[FrameType, int]]:
    """The project's own frames with their lines: what lies between pytest and pytest."""
    frames = list(traceback.walk_tb(trace))
    while frames and is_hidden(frames[-1][0]):
        frames.pop()
    inner = [place for place, (frame, _) in enumerate(frames) if is_of_pytest(frame)]
    frames = [pair for pair in frames[max(inner, default=-1) + 1 :] if not is_hidden(pair[0])]
    if len(frames) > MOST_FRAMES:
        frames = frames[: MOST_FRAMES // 3] + frames[-(MOST_FRAMES - MOST_FRAMES // 3) :]
    return frames


def is_hidden(frame: FrameType) -> bool:
    """Whether a frame is pytest's, unittest's, or asks not to be shown."""
    return (
        is_of_pytest(frame)
        or "__unittest" in frame.f_globals
        or frame.f_locals.get("__tracebackhide__") is True
    )


def is_of_pytest(frame: FrameType) -> bool:
    """Whether a frame's code is pytest's own."""
    return frame.f_code.co_filename.startswith(INSIDE_PYTEST)


def shorten_path(file: str) -> str:
    """Relative to where the command started, if it lies there."""
    try:
        return str(Path(file).relative_to(START))
    except ValueError:
        return file


def shorten(text: str, longest: int) -> str:
    """Head and tail of a long text."""
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail]}\n... {len(text) - longest} characters ...\n{text[-tail:]}"

"""Short descriptions of test failures, for proposers that repair candidates. PYTEST_DONT_REWRITE"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Generator

import pytest

MAX_MESSAGE_CHARS, MAX_VALUE_CHARS = 6_000, 500
MAX_FRAMES = 12
START = Path.cwd()
"""The folder in which the command started; tests may change to others."""
INSIDE_PYTEST = tuple(
    os.path.dirname(sys.modules[name].__file__ or "") + os.sep
    for name in ("_pytest", "pluggy")
    if name in sys.modules
)


class FailureDescriber:
    """Adds short descriptions to reports: location, lines of code, error, both compared values.

    Also in xdist workers, whose reports are sent with all their attributes.
    """

    def __init__(self) -> None:
        self.compared: tuple[str, str] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> None:
        self.compared = (safe_repr(left), safe_repr(right)) if op == "==" else None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: Any) -> Generator[None, Any, None]:
        outcome = yield
        compared, self.compared = self.compared, None
        if outcome.excinfo is None and outcome.get_result().failed and call.excinfo is not None:
            report = outcome.get_result()
            # Reports of other kinds (doctests, missing fixtures) are short already.
            if hasattr(report.longrepr, "reprtraceback"):
                report.fairtrial = make_report_fields(call.excinfo, compared)


def make_report_fields(excinfo: Any, compared: tuple[str, str] | None) -> dict[str, str]:
    """Return the fields to add to a report; none if the project's exception can't be read."""
    try:
        fields = {"message": describe(excinfo)}
        # The last comparison may have failed earlier, and been caught.
        if compared is not None and str(excinfo.value).startswith("assert "):
            fields["left"], fields["right"] = compared
    except Exception:
        return {}
    return fields


def safe_repr(value: object) -> str:
    """Return the `repr` of a value, shortened; a placeholder if it raises."""
    try:
        return shorten(repr(value), MAX_VALUE_CHARS)
    except Exception as error:
        return f"<a {type(value).__name__} whose repr raises {type(error).__name__}>"


def describe(excinfo: Any) -> str:
    """Return a short traceback, without pytest's own frames, and the exception."""
    error = excinfo.value
    if hasattr(error, "exceptions"):  # an exception group, which needs its full traceback
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return shorten(text, MAX_MESSAGE_CHARS)
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
    return shorten("\n".join(lines), MAX_MESSAGE_CHARS)


def find_frames(trace: TracebackType) -> list[tuple[FrameType, int]]:
    """Return the project's own frames with their lines, without those of pytest around them."""
    frames = list(traceback.walk_tb(trace))
    while frames and is_hidden(frames[-1][0]):
        frames.pop()
    pytest_frames = [index for index, (frame, _) in enumerate(frames) if is_of_pytest(frame)]
    first = max(pytest_frames, default=-1) + 1
    frames = [pair for pair in frames[first:] if not is_hidden(pair[0])]
    if len(frames) > MAX_FRAMES:
        frames = frames[: MAX_FRAMES // 3] + frames[-(MAX_FRAMES - MAX_FRAMES // 3) :]
    return frames


def is_hidden(frame: FrameType) -> bool:
    """Return whether a frame is pytest's or unittest's, or is marked as hidden."""
    return (
        is_of_pytest(frame)
        or "__unittest" in frame.f_globals
        or frame.f_locals.get("__tracebackhide__") is True
    )


def is_of_pytest(frame: FrameType) -> bool:
    """Return whether a frame's code is pytest's own."""
    return frame.f_code.co_filename.startswith(INSIDE_PYTEST)


def shorten_path(file: str) -> str:
    """Return a path relative to the command's folder, if it is inside."""
    try:
        return str(Path(file).relative_to(START))
    except ValueError:
        return file


def shorten(text: str, longest: int) -> str:
    """Cut the middle out of a long text."""
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail]}\n... {len(text) - longest} characters ...\n{text[-tail:]}"

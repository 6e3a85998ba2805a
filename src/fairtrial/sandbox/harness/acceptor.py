"""Judges results with the problem's accept function, on the trusted base.

Run by path in the project's Python, out of the reach of candidates. The job is on stdin, as JSON:
``{"file": "checks/verify.py", "function": "is_solution", "cases": [{"args": [...], "kwargs": {...},
"result": ...}, ...]}``. One line of JSON for each case goes to the channel: ``accepted`` with true
or the reason why not, or the ``mistake`` of the accept function, which ends it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import types
from typing import Any

_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import codec, decoder, input_maker, pickled_calls  # type: ignore[import-not-found]  # noqa: E402

MAX_TRACEBACK_CHARS = 2000


def main() -> int:
    """Judge all results, or report the mistake."""
    job = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    with open(int(os.environ.pop("FAIRTRIAL_CHANNEL")), "w", encoding="ascii") as channel:
        try:
            accept = input_maker.load_maker(job["file"], job["function"])
            for case in job["cases"]:
                channel.write(codec.dump_encoded({"accepted": judge(accept, case)}) + "\n")
        except input_maker.MakerError as error:
            channel.write(codec.dump_encoded({"mistake": str(error), "traceback": ""}) + "\n")
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
            report = {"mistake": message, "traceback": format_own_frames(error)}
            channel.write(codec.dump_encoded(report) + "\n")
    return 0


def format_own_frames(error: BaseException) -> str:
    """Return where the accept function failed, without the frames of this harness."""
    here = _package.__path__[0]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if os.path.dirname(frame.filename) != here]
    return "".join(traceback.format_list(own))[-MAX_TRACEBACK_CHARS:]


def judge(accept: Any, case: dict[str, Any]) -> Any:
    """Return True, or the reason why a result is not accepted.

    Raises `MakerError` if the accept function returns anything else.
    """
    args, kwargs = pickled_calls.decode_call(case)
    try:
        result = decoder.decode(case["result"])
    except ValueError as error:
        return f"it is not plain data: {error}"
    answer = accept(args, kwargs, result)
    if answer is True or (isinstance(answer, str) and answer):
        return answer
    raise input_maker.MakerError(
        "it must return True, or a text that says why a result is wrong; it returned "
        + input_maker.shorten(repr(answer))
    )


if __name__ == "__main__":
    sys.exit(main())

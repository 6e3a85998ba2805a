"""The worker whose instructions are counted: calls one function a given number of times, and exits.

Run by path in the project's Python, under valgrind. The first line of stdin is the job, as JSON (as
for `timed_worker`, and ``calls``: how many calls); then come the inputs, joined as in `packing`. It
reports nothing: valgrind writes its counts to another descriptor.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import types
from typing import Any, NoReturn

_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import timed_worker  # type: ignore[import-not-found]  # noqa: E402

# Bound early, before candidates can replace them.
_exit, _collect, _freeze = os._exit, gc.collect, gc.freeze


def main() -> NoReturn:
    """Decode all inputs, call the function with the first of them, and exit at once."""
    os.close(int(os.environ.pop("FAIRTRIAL_CHANNEL")))  # valgrind has its own copy
    first, _, lines = sys.stdin.buffer.read().partition(b"\n")
    job = json.loads(first)
    timed_worker.call_worker.hide_harness()
    batch = timed_worker.CallBatch(job)
    batch.load_inputs(lines)
    all_cases = batch.cases  # kept alive, since freeing some of them would be counted
    batch.cases = all_cases[: job["calls"]]
    _collect()
    _freeze()
    batch.run()
    _exit(0)


if __name__ == "__main__":
    main()

"""The worker whose instructions are counted: calls one function so often, and leaves.

Run by path in the project's Python, under valgrind. On stdin there is a line of JSON, the job (as
for `turns`, and ``calls``: how many calls), and then a line for each input. It reports nothing: it
is valgrind that counts, and says so on a descriptor of its own.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import types
from typing import Any, NoReturn

_package: Any = types.ModuleType("_fairtrial_harness")  # a name that nobody else has
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import timed_worker  # type: ignore[import-not-found]  # noqa: E402

# Kept before candidates can replace them.
_exit, _collect, _freeze = os._exit, gc.collect, gc.freeze


def main() -> NoReturn:
    """Make all inputs ready, call the function with the first of them, leave at once."""
    os.close(int(os.environ.pop("FAIRTRIAL_CHANNEL")))  # valgrind has opened it for itself
    first, _, lines = sys.stdin.buffer.read().partition(b"\n")
    job = json.loads(first)
    work = timed_worker.Work(job)
    work.take(lines)
    all_cases = work.cases  # kept: giving some of them back would be counted
    work.cases = all_cases[: job["calls"]]
    _collect()
    _freeze()
    work.go()
    _exit(0)


if __name__ == "__main__":
    main()

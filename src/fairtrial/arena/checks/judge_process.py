"""Judging of large reports in a process of its own, with limits of memory and CPU time.

Parsed JSON takes many times the space of its text, and a thread can't be stopped. Small reports are
judged in a thread: starting a process would take longer.
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from fairtrial.arena.checks.comparison_rules import STOPPING
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection

SMALL_BYTES = 2 * 2**20
"""Up to which size reports are judged in a thread."""
MEMORY_BYTES = 3 * 2**30
CPU_S = 60
Judge = Callable[..., Rejection | None]


def count_differing(lines: Sequence[bytes], expected: Sequence[bytes]) -> int:
    """Return the size of the lines that must be parsed since they aren't the expected ones."""
    pairs = zip(lines, expected, strict=False)
    return sum(len(line) + len(wanted) for line, wanted in pairs if line != wanted)


async def judge_bounded(label: str, size: int, judge: Judge, *args: Any) -> Rejection | None:
    """Call a function that judges a report; return its rejection, or that it exceeded its limits.

    When this is cancelled, the process or the comparison ends.

    label: the check's path in the problem
    size: about how many bytes have to be parsed
    """
    import anyio

    if size <= SMALL_BYTES:
        stopping = threading.Event()
        token = STOPPING.set(stopping)
        try:
            return await anyio.to_thread.run_sync(judge, *args, abandon_on_cancel=True)
        finally:
            STOPPING.reset(token)
            stopping.set()
    job = await anyio.to_thread.run_sync(pickle.dumps, (judge, args))
    done = await anyio.run_process(
        [sys.executable, "-m", __name__],
        input=job,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    if done.returncode == 0:
        rejection: Rejection | None = pickle.loads(done.stdout)
        return rejection
    message = (
        f"its results could not be compared within {CPU_S} s of CPU time and "
        f"{MEMORY_BYTES // 2**30} GB: they take {size:,} bytes with the base's"
    )
    return Rejection(Reason.DIFFERENT, message, (Failure(label, "report", message),))


def main() -> None:
    """Judge one report: a pickled function and its arguments come on stdin."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    judge, args = pickle.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pickle.dumps(judge(*args)))


if __name__ == "__main__":
    main()

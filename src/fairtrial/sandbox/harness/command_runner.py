"""Runs one command again and again on request, and measures each run.

Run by path; communicates on one descriptor (see `frames`):

- ``H``  hello: sent once, without a request, when it is ready
- ``L``  load; JSON with argv, prepare (a command or null) and output_bytes (how much of the output
  is returned). Replies with own_mb, the peak memory of this process: no run needs less, since it
  begins as a copy of it
- ``R``  run; JSON with limit_s and most_bytes, or nulls: then a run that takes too long or prints
  too much is ended, which takes polling. Replies with JSON: what came of the run (see `run`)

Each run is a new process in a process group of its own, with empty standard input and its output in
files. It is timed from its start to its end by this process, and CPU time and peak memory are the
kernel's figures for it and all descendants that were waited for.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import types
from typing import Any, NoReturn

_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package

from _fairtrial_harness import frames  # type: ignore[import-not-found]  # noqa: E402

_POLL_S = 0.005
_now = time.perf_counter
_RESET = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]
"""Signals that Python ignores, and other programs don't expect to be ignored."""


class Runner:
    """A command, and where its output goes.

    job: what was loaded
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self.argv: list[str] = job["argv"]
        self.prepare: list[str] | None = job["prepare"]
        self.kept: int = job["output_bytes"]
        self.input = os.open(os.devnull, os.O_RDONLY)
        self.outputs = [_make_file("out"), _make_file("err")]
        self.child = 0

    def run(self, limit_s: float | None, most_bytes: int | None) -> dict[str, Any]:
        """Run what prepares, then the command; return what came of it.

        The reply has exit_code, signal, wall_s, cpu_s, peak_mb, printed (bytes of standard output
        and standard error), stopped ("time" or "output", or null), start_error (or null), tail (the
        end of its error output, or else of its output) and prepared (whether it was the command
        that ran, not what prepares it).
        """
        if self.prepare is not None:
            prepared = self._run(self.prepare, limit_s, most_bytes)
            if prepared["start_error"] or prepared["stopped"] or prepared["exit_code"] != 0:
                return {**prepared, "prepared": False}
        return {**self._run(self.argv, limit_s, most_bytes), "prepared": True}

    def _run(
        self, argv: list[str], limit_s: float | None, most_bytes: int | None
    ) -> dict[str, Any]:
        for file in self.outputs:
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
        report: dict[str, Any] = {"stopped": None, "start_error": None}
        descriptors = (self.input, *self.outputs)
        actions = [(os.POSIX_SPAWN_DUP2, file, number) for number, file in enumerate(descriptors)]
        began = _now()
        try:
            self.child = os.posix_spawnp(
                argv[0], argv, os.environ, file_actions=actions, setpgroup=0, setsigdef=_RESET
            )
        except OSError as error:
            return {**report, "start_error": error.strerror or str(error), "error": error.errno}
        if limit_s is not None or most_bytes is not None:
            report["stopped"] = self._watch(began, limit_s, most_bytes)
        _, status, usage = os.wait4(self.child, 0)
        wall_s = _now() - began
        self.end_group()
        code = status >> 8 if not status & 0x7F else None
        printed = [os.fstat(file).st_size for file in self.outputs]
        return {
            **report,
            "exit_code": code,
            "signal": status & 0x7F or None,
            "wall_s": wall_s,
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_mb": _megabytes(usage),
            "printed": printed,
            "tail": "" if code == 0 else self._tail(printed),
        }

    def end_group(self) -> None:
        """End what the command left running."""
        if self.child:
            try:
                os.killpg(self.child, signal.SIGKILL)
            except OSError:
                pass  # there is nothing left
            self.child = 0

    def _watch(self, began: float, limit_s: float | None, most_bytes: int | None) -> str | None:
        """Wait for the end of the command; end it if it takes too long or prints too much."""
        while True:
            if os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return None
            printed = sum(os.fstat(file).st_size for file in self.outputs)
            is_late = limit_s is not None and _now() - began > limit_s
            if is_late or (most_bytes is not None and printed > most_bytes):
                os.killpg(self.child, signal.SIGKILL)
                return "time" if is_late else "output"
            time.sleep(_POLL_S)

    def _tail(self, printed: list[int]) -> str:
        out, err = self.outputs
        file, size = (err, printed[1]) if printed[1] else (out, printed[0])
        return os.pread(file, self.kept, max(0, size - self.kept)).decode("utf-8", "replace")


def _make_file(name: str) -> int:
    """Return a new file without a name; `tempfile` would make this process larger."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    path = os.path.join(folder, f"fairtrial-{name}-{os.getpid()}")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    return descriptor


def _megabytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024)


def _own_peak_mb() -> float:
    """Return this program's peak memory; `getrusage` includes that of the one before its exec."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            line = next(line for line in file if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    except (OSError, StopIteration):
        return _megabytes(resource.getrusage(resource.RUSAGE_SELF))


def main() -> NoReturn:
    """Serve requests until the channel is closed."""
    requests = frames.RequestChannel(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    runner: Runner | None = None

    def end(*_: object) -> NoReturn:
        if runner is not None:
            runner.end_group()
        os._exit(1)

    signal.signal(signal.SIGTERM, end)
    requests.reply(b"H", 0)
    while True:
        letter, number, payload = requests.receive()
        request = json.loads(payload.decode("utf-8", "surrogateescape"))
        answer: dict[str, Any] = {}
        if letter == b"L":
            runner = Runner(request)
            answer = {"own_mb": _own_peak_mb()}
        elif runner is not None:
            answer = runner.run(request["limit_s"], request["most_bytes"])
        requests.reply(letter, number, json.dumps(answer).encode("ascii"))


if __name__ == "__main__":
    main()

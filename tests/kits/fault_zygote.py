"""Runs `fairtrial` commands in processes of their own, quickly: forked from this warm one.

Reads requests, one JSON document a line, and answers in kind. A request may ask for a fault to be
injected: see `inject`. The child ends as any interpreter does, its exit code is the command's.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import fairtrial.cli.control
import fairtrial.cli.run
import fairtrial.cli.status  # noqa: F401 - loaded before the fork
from fairtrial.cli import main as cli_main
from fairtrial.cli.main import main
from fairtrial.study import runner
from fairtrial.study.ledger import writer as store
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.runner import control, run as engine_run, run_loop
from fairtrial.study.runner.assignment_feed import AssignmentFeed
from fairtrial.study.runner.executors.worker_pool import WorkerPool
from fairtrial.study.runner.progress import ProgressCounts
from fairtrial.study.runner.run_loop import RunLoop
from fairtrial.study.tables import export, generation
from fairtrial.study.tables.csv_tables import CsvFile
from fairtrial.study.tables.run_tables import RunTables

PHASES = ("start", "run", "commit", "export", "publish", "end")


class Steps:
    """Counts what the process does, phase by phase, and kills it at the step it is told.

    The instant before and the one after each deed are steps of their own. Forked workers and other
    threads count nothing: theirs come when they come, and each time after another number of ours.
    """

    def __init__(self, at: dict[str, Any], number: int = signal.SIGKILL) -> None:
        self.counts = dict.fromkeys(PHASES, 0)
        self.phase = "start"
        self._pid, self._thread = os.getpid(), threading.get_ident()
        self._at, self._number = at, number

    def _is_ours(self) -> bool:
        return (os.getpid(), threading.get_ident()) == (self._pid, self._thread)

    def step(self) -> None:
        if not self._is_ours():
            return
        if self.phase == self._at.get("phase") and self.counts[self.phase] == self._at["step"]:
            self._kill()
        self.counts[self.phase] += 1

    def _kill(self) -> None:
        delay_s = self._at.get("after_s")
        if delay_s is None:
            os.kill(self._pid, self._number)
            return

        def kill_soon() -> None:
            until = time.perf_counter() + delay_s
            while time.perf_counter() < until:
                pass
            os.kill(self._pid, signal.SIGKILL)

        threading.Thread(target=kill_soon).start()

    def watch(self, owner: Any, name: str) -> None:
        """Make a function's beginning and its end steps."""
        function = getattr(owner, name)

        def watched(*args: Any, **named: Any) -> Any:
            self.step()
            value = function(*args, **named)
            self.step()
            return value

        setattr(owner, name, watched)

    def mark(self, owner: Any, name: str, phase: str, after: str | None = None) -> None:
        """While a function runs it is that phase; then `after`, or what it was before."""
        function = getattr(owner, name)

        def marked(*args: Any, **named: Any) -> Any:
            if not self._is_ours():
                return function(*args, **named)
            before = self.phase
            self.phase = phase
            self.step()
            try:
                return function(*args, **named)
            finally:
                self.phase = after or before

        setattr(owner, name, marked)


def watch_everything(steps: Steps) -> None:
    class Connection(sqlite3.Connection):
        def execute(self, *args: Any) -> Any:
            steps.step()
            cursor = super().execute(*args)
            steps.step()
            return cursor

        def executemany(self, *args: Any) -> Any:
            steps.step()
            cursor = super().executemany(*args)
            steps.step()
            return cursor

        def executescript(self, *args: Any) -> Any:
            steps.step()
            cursor = super().executescript(*args)
            steps.step()
            return cursor

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **named: connect(*args, **named, factory=Connection)  # type: ignore[assignment]
    for name in ("replace", "symlink", "mkdir", "unlink", "fsync", "ftruncate"):
        steps.watch(os, name)
    steps.watch(shutil, "rmtree")
    for owner, name in (
        (RunLoop, "_finish"),
        # Not what the loop does from time to time: how often depends on the clock.
        (ProgressCounts, "count"),
        (Ledger, "add_result"),
        (Ledger, "add_event"),
        (Ledger, "_count_waiting"),
        (AssignmentFeed, "__call__"),
        (CsvFile, "add_lines"),
        (RunTables, "add"),
        (export, "_write_json"),
        (export, "check_set"),
    ):
        steps.watch(owner, name)
    steps.mark(RunLoop, "run", "run")
    steps.mark(Ledger, "commit", "commit")
    steps.mark(engine_run, "export_tables", "export", "end")
    steps.mark(generation, "_publish", "publish")


def report_to(path: str) -> None:
    """Let `on_result` write down which runs were reported as done."""
    execute_study = runner.execute_study
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def reporting(study: Any, settings: Any) -> Any:
        def note(result: Any) -> None:
            os.write(handle, f"{result.run_id}\n".encode())

        return execute_study(study, replace(settings, on_result=note))

    runner.execute_study = reporting


def inject(faults: dict[str, Any]) -> None:
    """Set up what is to go wrong.

    kill_at: `{phase, step}`, with `after_s` that long after the step began
    signal_at: the same with an interrupt instead
    count_to: the file to write the number of steps in each phase to
    report_to: the file that `on_result` appends to
    group_runs: how many results make a commit
    group_s: how long a result may wait for one
    live_s: how often it tells what goes on
    grace_s: how long it waits for threads that agents left
    cancel_at_start: the output directory; somebody asks to cancel it before it has a plan
    hang_at_end: the end of the workers takes for ever; first, the file of that name is made
    file_bytes: the largest file that may be written, as if the disk were full then
    full_in_export: the same, from the beginning of the export on
    """
    if "signal_at" in faults:
        watch_everything(Steps(faults["signal_at"], signal.SIGINT))
    if "kill_at" in faults or "count_to" in faults:
        steps = Steps(faults.get("kill_at", {}))
        watch_everything(steps)
        if "count_to" in faults:
            atexit.register(lambda: Path(faults["count_to"]).write_text(json.dumps(steps.counts)))
    if "report_to" in faults:
        report_to(faults["report_to"])
    if "group_runs" in faults:
        store.COMMIT_RUNS = faults["group_runs"]
    if "group_s" in faults:
        store.COMMIT_S = faults["group_s"]
    if "grace_s" in faults:
        cli_main.GRACE_S = faults["grace_s"]
    if "live_s" in faults:
        run_loop.LIVE_S = faults["live_s"]
    if "cancel_at_start" in faults:
        store_plan = engine_run.store_plan

        def cancel(*args: Any) -> Any:
            control.request(Path(faults["cancel_at_start"]), "cancel")
            return store_plan(*args)

        engine_run.store_plan = cancel  # type: ignore[attr-defined]
    if "hang_at_end" in faults:
        end = WorkerPool.end

        def hang(pool: WorkerPool) -> None:
            end(pool)
            Path(faults["hang_at_end"]).touch()
            while True:
                time.sleep(1)

        WorkerPool.end = hang  # type: ignore[method-assign]
    if "file_bytes" in faults:
        limit_files(faults["file_bytes"])
    if "full_in_export" in faults:
        write = export._write

        def write_little(*args: Any, **named: Any) -> Any:
            limit_files(faults["full_in_export"])
            return write(*args, **named)

        export._write = write_little


def limit_files(most_bytes: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))


def start(request: dict[str, Any]) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        become(request)
    return pid


def become(request: dict[str, Any]) -> NoReturn:
    """Be the command that was asked for."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    out, err = (os.open(request[name], flags, 0o666) for name in ("stdout", "stderr"))
    for number, place in ((null, 0), (out, 1), (err, 2)):
        os.dup2(number, place)
        os.close(number)
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    inject(request["faults"])
    sys.argv = ["fairtrial", *request["arguments"]]
    try:
        main()
    except SystemExit as stop:
        if threading.active_count() > 1:
            raise
        # Nothing is left to wait for: tearing down what was forked only takes time.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(int(stop.code or 0))


def warm_up() -> None:
    """Run a study here and now, so that the children needn't import what it takes."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        study = Path(folder) / "study.yaml"
        study.write_text(
            "{study_id: s, title: t, description: d, factors: [{name: x, levels: [1, 2]}], "
            "condition_runner: 'warm:run'}"
        )
        (Path(folder) / "warm.py").write_text(
            "from fairtrial import RunOutput\ndef run(spec, condition): return RunOutput({}, {})"
        )
        with contextlib.suppress(SystemExit):
            main(["run", str(study), "--output", f"{folder}/out", "--no-progress"])


def serve() -> None:
    warm_up()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        else:
            answer = start(request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()

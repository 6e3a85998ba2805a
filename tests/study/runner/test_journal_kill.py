"""kill -9 of a worker or of the study around a journal entry: what was said to be safe is there.

The instants are places in the code, not times. Each is struck once, in whichever process gets there
first; then the run is tried again, by the same study or, if that is gone, by the next session.
"""

import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from run_kit import make_study, run

from fairtrial.study.ledger.journal_store import JournalStore
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.runner.executors import worker_main as worker
from fairtrial.study.runner.executors.frames import ENTRY, make_frame
from fairtrial.study.runner.executors.worker_process import WorkerProcess
from fairtrial.testing.executor_driver import is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and looks into /proc")

STEPS, STRUCK = 5, 2
LONGEST_S = 60.0
IN_WORKER = ("before it is sent", "half sent", "sent", "worker after it")
IN_PARENT = ("before it is written", "within the transaction", "committed", "parent after it")
IN_POOL = ("acknowledged",)


class Striker:
    """Kills a process at its instant, once."""

    def __init__(self, folder, instant):
        self.folder, self.instant, self.study = folder, instant, None

    def strike(self, instant, number, pid=None, first=lambda: None):
        if (instant, number) != (self.instant, STRUCK):
            return
        try:
            os.close(os.open(self.folder / "struck", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        first()
        os.kill(pid or os.getpid(), signal.SIGKILL)
        time.sleep(LONGEST_S)

    def tell(self, what, step):
        with (self.folder / "witness").open("a") as file:
            file.write(f"{what} {step} {os.getpid()}\n")

    def agent(self, task):
        known = {entry.data["step"] for entry in task.journal.entries()}
        for step in range(STEPS):
            if step not in known:
                self.tell("paid", step)
                self.strike("before it is sent", step)
                task.journal.append(
                    "reply", {"step": step, "noise": random.Random(step).randbytes(100_000)}
                )
                self.tell("kept", step)
                self.strike("worker after it", step)
                self.strike("parent after it", step, self.study)
        return {"x": [entry.data["step"] for entry in task.journal.entries()]}

    def arm(self):
        """Put the instants into the code of this process, and of those that it forks."""
        self.study = os.getpid()
        send, add, confirm = worker._Channel.send, JournalStore.add, WorkerProcess.confirm_entry
        writing = Ledger.writing
        counts = Counter()

        def note_send(channel, kind, content=b""):
            number = counts["sent"]
            if kind == ENTRY:
                counts["sent"] += 1
                frame = make_frame(kind, content)
                half = frame[: len(frame) // 2]
                self.strike("half sent", number, first=lambda: os.write(channel._reply, half))
            send(channel, kind, content)
            if kind == ENTRY:
                self.strike("sent", number)

        def note_add(journals, entries):
            self.strike("before it is written", counts["added"])
            add(journals, entries)
            self.strike("committed", counts["added"])
            counts["added"] += 1

        @contextmanager
        def note_writing(ledger):
            with writing(ledger) as connection:
                yield connection
                self.strike("within the transaction", counts["added"])

        def note_confirmation(worker_process):
            confirm(worker_process)
            worker_process.write_requests()
            self.strike("acknowledged", counts["added"] - 1)

        worker._Channel.send, JournalStore.add = note_send, note_add
        Ledger.writing, WorkerProcess.confirm_entry = note_writing, note_confirmation


def study_of(folder):
    return make_study(folder / "out", levels=(1,), replicates=1, budget={"retries": 1})


def run_session(striker, executor, *, armed):
    """A session of the study in a process of its own; how that ended."""
    child = os.fork()
    if not child:
        try:
            if armed:
                striker.arm()
            results = run(
                study_of(striker.folder),
                striker.agent,
                problem={"evaluator": None},
                executor=executor,
                resume=True,
                retry_wait_s=0.001,
            )
            assert [result.outputs for result in results] == [{"x": list(range(STEPS))}]
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def witnessed(folder):
    lines = [line.split() for line in (folder / "witness").read_text().splitlines()]
    return [(what, int(step), int(pid)) for what, step, pid in lines]


def assert_gone(pids):
    until = time.monotonic() + LONGEST_S
    while any(map(is_alive, pids)):
        assert time.monotonic() < until, "a worker outlived its study"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("executor", "instant"),
    [("processes", instant) for instant in (*IN_WORKER, *IN_PARENT, *IN_POOL)]
    + [("serial", instant) for instant in IN_PARENT]
    + [("threads", "within the transaction"), ("threads", "committed")],
)
def test_entries_that_were_confirmed_are_on_disk(tmp_path, executor, instant):
    striker = Striker(tmp_path, instant)
    is_workers = instant in IN_WORKER
    assert run_session(striker, executor, armed=True) == (0 if is_workers else -signal.SIGKILL)
    assert (tmp_path / "struck").exists()
    if not is_workers:
        assert_gone({pid for _, _, pid in witnessed(tmp_path)})
        safe = {step for what, step, _ in witnessed(tmp_path) if what == "kept"}
        with sqlite3.connect(tmp_path / "out" / "ledger.sqlite") as ledger:
            numbers = [row[0] for row in ledger.execute("SELECT number FROM journal")]
            assert ledger.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        ledger.close()
        assert safe <= set(numbers)
        assert run_session(striker, executor, armed=False) == 0
    paid = Counter(step for what, step, _ in witnessed(tmp_path) if what == "paid")
    assert set(paid) == set(range(STEPS))
    # Once it has the study's word, a worker may be at the next step before it is gone itself.
    cut_off = {STRUCK, STRUCK + (instant == "acknowledged")}
    assert {step for step, times in paid.items() if times > 1} <= cut_off
    was_kept = instant in ("committed", "acknowledged", "worker after it", "parent after it")
    if was_kept or instant == "sent":
        assert paid[STRUCK] == 1, "an entry that was committed is paid for again"
    else:
        assert paid[STRUCK] == 2, "an entry that nobody committed is not there"

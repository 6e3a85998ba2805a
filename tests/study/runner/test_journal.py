"""A run's journal: entries are durable, and later attempts at the run find them."""

import os
import random
import signal
import sqlite3
import threading

import pytest
from hypothesis import given, strategies as st
from run_attempt_kit import CONDITION, assignment, work_for
from run_kit import make_study, run

from fairtrial import Broken, LedgerError, open_results
from fairtrial.study import RunSpec, Task
from fairtrial.study.agents import JournalEntry, journal as journals
from fairtrial.study.agents.journal import Journal
from fairtrial.study.executors import unpack
from fairtrial.study.ledger.journal_store import JournalStore, read_journal
from fairtrial.study.ledger.packing import UnwritableError
from fairtrial.study.ledger.writer import open_ledger
from fairtrial.study.runner.executors import async_tasks, threads
from fairtrial.study.runner.executors.frames import dump_durable
from fairtrial.study.runner.executors.pending_entry import PendingEntry
from fairtrial.study.runner.executors.worker_main import _JournalSender

WAIT_S = 30.0
EXECUTORS = ("serial", "threads", "processes")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text() | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.lists(st.tuples(st.text(), st.dictionaries(st.text(), PLAIN, max_size=3)), max_size=5)


def data_of(journal):
    return [entry.data for entry in journal.entries()]


def spec_of(name="run-1", seed=7):
    return RunSpec(name, "s", "c", "p", 1, seed, "a", "p")


# -- a journal by itself --


@given(ENTRIES, ENTRIES)
def test_entries_come_back_unchanged_in_order(earlier, own):
    kept = []
    for kind, data in earlier:
        Journal(kept, kept.append).append(kind, data)
    journal = Journal(kept)
    for kind, data in own:
        journal.append(kind, data)
    assert [(entry.kind, entry.data) for entry in journal.entries()] == earlier + own


def test_a_task_made_by_hand_has_a_journal_in_memory():
    task = Task(None, CONDITION, spec_of())
    task.journal.append("reply", {"pair": (1, 2)})
    # As it would be read back: what an agent sees must not depend on whether it was resumed.
    assert task.journal.entries() == (JournalEntry("reply", {"pair": [1, 2]}),)


@pytest.mark.parametrize(("data", "error"), [({"x": object()}, UnwritableError), ([1], TypeError)])
def test_what_cannot_be_written_down_is_refused(data, error):
    kept = []
    journal = Journal((), kept.append)
    with pytest.raises(error, match=r"journal entry"):
        journal.append("reply", data)
    assert (kept, journal.entries()) == ([], ())


def test_an_entry_that_was_not_kept_is_not_there():
    def fail(data):
        raise Broken("no room")

    journal = Journal((), fail)
    with pytest.raises(Broken):
        journal.append("reply", {})
    assert journal.entries() == ()


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [
        ("MOST_ENTRY_BYTES", 100, "write it to a file in the run's workspace"),
        ("MOST_JOURNAL_BYTES", 200, "one too many"),
        ("MOST_ENTRIES", 1, "one too many: a run's journal holds 1 entries"),
    ],
)
def test_a_journal_is_bounded_over_all_attempts(monkeypatch, limit, value, message):
    monkeypatch.setattr(journals, limit, value)
    noise = random.Random(0).randbytes(120)  # which can't be compressed
    kept = []
    Journal((), kept.append).append("reply", {"text": noise[:50]})
    journal = Journal(kept, kept.append)
    with pytest.raises(ValueError, match=message):
        journal.append("reply", {"text": noise})
    assert len(kept) == len(journal.entries()) == 1


def test_prompts_that_are_much_alike_take_little_room():
    kept = []
    Journal((), kept.append).append("reply", {"prompt": "the same again. " * 10_000})
    assert len(kept[0]) < 10_000


def test_nothing_is_kept_after_the_end_of_the_run():
    journal = Journal()
    journal.close()
    with pytest.raises(RuntimeError, match="the run is over"):
        journal.append("reply", {})


def test_a_journal_entry_without_a_note_function_breaks_the_run():
    outcome = work_for(lambda task: task.journal.append("a", {})).attempt(assignment(), len)
    assert outcome.failure_kind == "broken"
    assert "can't keep a journal" in unpack(outcome.body)["error_info"]


def test_a_late_answer_is_not_taken_for_the_next_one():
    class Channel:
        def __init__(self):
            self.answers = [TimeoutError(), dump_durable(1), dump_durable(2)]

        def send(self, kind, content):
            pass

        def receive(self):
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer  # by the handler of an alarm, say
            return answer

    channel = Channel()
    notes = _JournalSender(channel)
    with pytest.raises(TimeoutError):
        notes(b"first")
    notes(b"second")
    assert channel.answers == []


# -- the ledger --


def test_each_run_has_its_own_journal(tmp_path):
    ledger = open_ledger(tmp_path)
    here = JournalStore(ledger)
    runs = [spec_of("run-1", 1), spec_of("run-1", 2), spec_of("run-2", 1)]
    for number in range(3):
        for spec in runs:
            here.add([(spec, 1, f"{spec.run_id} {spec.seed} {number}".encode())])
    ledger.close()
    ledger = open_ledger(tmp_path)
    for spec in runs:
        expected = tuple(f"{spec.run_id} {spec.seed} {number}".encode() for number in range(3))
        assert JournalStore(ledger).entries(spec) == expected
    assert JournalStore(ledger).entries(spec_of("run-3")) == ()
    ledger.close()


def test_an_entry_is_on_disk_when_it_is_added(tmp_path):
    ledger = open_ledger(tmp_path)
    JournalStore(ledger).add([(spec_of(), 1, b"x")])
    other = sqlite3.connect(tmp_path / "ledger.sqlite")
    assert read_journal(other, None, spec_of()) == (b"x",)
    other.close()
    ledger.close()


def test_bytes_that_have_changed_are_noticed(tmp_path):
    ledger = open_ledger(tmp_path)
    here = JournalStore(ledger)
    here.add([(spec_of(), 1, b"x")])
    ledger.connection.execute("UPDATE journal SET data = x'79'")
    with pytest.raises(LedgerError, match="damaged"):
        here.entries(spec_of())
    ledger.close()


def test_a_ledger_from_before_there_were_journals_gets_one(tmp_path):
    study = make_study(tmp_path, levels=(1,), replicates=1)
    run(study)
    with sqlite3.connect(tmp_path / "ledger.sqlite") as file:
        file.execute("DROP TABLE journal")
    file.close()
    with open_results(tmp_path) as results:
        spec = results[0].run_spec
        assert read_journal(results.reader.connection, results.reader.path, spec) == ()
    run(study, resume=True)
    ledger = open_ledger(tmp_path)
    JournalStore(ledger).add([(spec_of(), 1, b"x")])
    ledger.close()


# -- runs --


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_retry_finds_what_the_attempt_before_committed(tmp_path, executor):
    def agent(task):
        before = data_of(task.journal)
        task.journal.append("step", {"x": task.factors["x"], "number": len(before)})
        if len(before) < 2:
            raise Broken("again")
        return {"x": 0, "before": before, "after": data_of(task.journal)}

    study = make_study(tmp_path, replicates=1, budget={"retries": 2})
    results = run(study, agent, executor=executor, parallelism=2, retry_wait_s=0.001)
    assert len(results) == 3
    for result, x in zip(results, (1, 2, 3), strict=True):
        steps = [{"x": x, "number": number} for number in range(3)]
        assert (result.outputs["before"], result.outputs["after"]) == (steps[:2], steps)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_run_that_failed_and_is_run_again_finds_its_journal(tmp_path, executor):
    def agent(task):
        before = data_of(task.journal)
        if not before:
            task.journal.append("reply", {"text": "é" * 400_000})
            raise ValueError
        return {"x": len(before[0]["text"])}

    study = make_study(tmp_path, levels=(1,), replicates=1)
    assert [result.status for result in run(study, agent, executor=executor)] == ["failed"]
    results = run(study, agent, executor=executor, resume=True, retry="failed")
    assert [result.outputs for result in results] == [{"x": 400_000}]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_threads_and_async_agents_may_append(tmp_path, executor):
    async def agent(task):
        crowd = [
            threading.Thread(target=task.journal.append, args=("n", {"n": number}))
            for number in range(5)
        ]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        task.journal.append("n", {"n": 5})
        return {"x": [entry["n"] for entry in data_of(task.journal)]}

    study = make_study(tmp_path, levels=(1,), replicates=1)
    (result,) = run(study, agent, executor=executor, problem={"evaluator": None})
    assert sorted(result.outputs["x"]) == list(range(6))
    with open_results(tmp_path) as results:
        reader = results.reader
        packed = read_journal(reader.connection, reader.path, result.run_spec)
    assert [entry.data["n"] for entry in Journal(packed).entries()] == result.outputs["x"]


def test_a_journal_is_not_in_the_tables(tmp_path):
    def agent(task):
        task.journal.append("reply", {"secret": "s3cret-w0rd"})
        return {"x": 1}

    run(make_study(tmp_path, levels=(1,), replicates=1), agent, include_sqlite=True)
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    holders = [path.name for path in files if b"s3cret-w0rd" in path.read_bytes()]
    assert set(holders) <= {"ledger.sqlite", "ledger.sqlite-wal"}
    assert holders


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_process_that_the_agent_forks_has_no_journal(tmp_path, executor):
    def agent(task):
        child = os.fork()
        if not child:
            try:
                task.journal.append("a", {})
            except RuntimeError:
                os._exit(7)
            finally:
                os._exit(0)
        return {"x": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}

    study = make_study(tmp_path, levels=(1,), replicates=1)
    assert [result.outputs for result in run(study, agent, executor=executor)] == [{"x": 7}]


def test_a_thread_past_its_time_is_refused_not_left_waiting(tmp_path):
    go, over, said = threading.Event(), threading.Event(), []

    def agent(task):
        go.wait()
        try:
            task.journal.append("a", {})
        except RuntimeError as error:
            said.append(str(error))
        over.set()

    study = make_study(tmp_path, levels=(1,), replicates=1, budget={"timeout_s": 0.05})
    (result,) = run(study, agent, executor="threads")
    assert result.failure_kind == "timeout"
    go.set()
    assert over.wait(60)
    assert "the run is over" in said[0]


def test_a_ledger_in_trouble_is_not_the_agents_failure(tmp_path, monkeypatch):
    def fail(self, entries):
        raise LedgerError("no room")

    monkeypatch.setattr(JournalStore, "add", fail)
    study = make_study(tmp_path, levels=(1,), replicates=1)

    def agent(task):
        task.journal.append("a", {})

    (result,) = run(study, agent, executor="serial", retry_wait_s=0.001)
    assert (result.status, result.failure_kind) == ("broken", "broken")
    assert "no room" in result.error_info
    with pytest.raises(LedgerError, match="no room"):
        run(study, agent, executor="processes", resume=True)


def test_an_interrupt_while_an_entry_is_written_leaves_it_whole(tmp_path, monkeypatch):
    add = JournalStore.add

    def interrupted(self, entries):
        os.kill(os.getpid(), signal.SIGINT)
        add(self, entries)

    def agent(task):
        if not task.journal.entries():
            task.journal.append("a", {"n": 1})
        return {"x": data_of(task.journal)}

    study = make_study(tmp_path, levels=(1,), replicates=1)
    with monkeypatch.context() as patch:
        patch.setattr(JournalStore, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(study, agent, executor="serial", problem={"evaluator": None})
    results = run(study, agent, executor="serial", resume=True, problem={"evaluator": None})
    assert [result.outputs for result in results] == [{"x": [{"n": 1}]}]


@pytest.mark.parametrize("executor", [threads, async_tasks])
def test_entries_that_wait_at_the_same_moment_are_written_together(tmp_path, executor, monkeypatch):
    at_once, all_wait, written = 8, threading.Semaphore(0), []

    class Answer(threading.Event):
        def wait(self, timeout=None):
            all_wait.release()
            return super().wait(timeout)

    class Entry(PendingEntry):
        def __init__(self, data):
            super().__init__(data, is_answered=Answer())

    add = JournalStore.add

    def count(self, entries):
        if not written:  # while the first ones are written, all others come
            for _ in range(at_once):
                assert all_wait.acquire(timeout=WAIT_S)
        entries = list(entries)
        written.append(len(entries))
        add(self, entries)

    def agent(task):
        task.journal.append("note", {"x": task.factors["x"]})
        return {"x": len(task.journal.entries())}

    monkeypatch.setattr(executor, "PendingEntry", Entry)
    monkeypatch.setattr(JournalStore, "add", count)
    study = make_study(tmp_path, levels=range(at_once), replicates=1)
    name = {threads: "threads", async_tasks: "async"}[executor]
    results = run(study, agent, executor=name, parallelism=at_once)
    assert [result.outputs for result in results] == [{"x": 1}] * at_once
    assert (len(written) <= 2, sum(written)) == (True, at_once)
    with open_results(tmp_path) as stored:
        place = stored.reader.connection, stored.reader.path
        assert [len(read_journal(*place, result.run_spec)) for result in stored] == [1] * at_once


def test_entries_written_together_are_one_transaction(tmp_path):
    ledger, statements = open_ledger(tmp_path), []
    ledger.connection.set_trace_callback(statements.append)
    JournalStore(ledger).add([(spec_of(), 1, b"x"), (spec_of(), 1, b"y"), (spec_of("b"), 1, b"z")])
    ledger.connection.set_trace_callback(None)
    assert statements.count("COMMIT") == 1
    assert JournalStore(ledger).entries(spec_of()) == (b"x", b"y")
    ledger.close()

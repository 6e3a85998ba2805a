"""Writing and reading the ledger: results come back in plan order, at little cost."""

import sqlite3
import threading
import time

import pytest
from hypothesis import given, strategies as st
from ledger_kit import add, begin, finished, make_plan, make_study, outcome, run_script, write_plan

from fairtrial import LedgerError, RunBudget
from fairtrial.study import RunStatus
from fairtrial.study.executors import Emitted, FailureKind, Finished, pack, unpack
from fairtrial.study.ledger import LEDGER_NAME, LedgerReader, reader as reading, writer as store
from fairtrial.study.ledger.reader import REMOVED
from fairtrial.study.ledger.writer import open_ledger


@pytest.fixture
def begun(tmp_path):
    """A ledger with a plan and a session, the plan and the order; closed at the end."""
    ledger, plan, order = begin(tmp_path)
    yield ledger, plan, order
    ledger.close()


def reader_of(ledger):
    return LedgerReader(ledger.connection, ledger.path)


# -- what was added comes back --


def read_event_texts(reader, execution_index, attempt):
    """The texts of all events of an attempt, which need not be the run's result."""
    query = "SELECT data FROM events WHERE turn = ? AND attempt = ? ORDER BY number"
    rows = reader.connection.execute(query, (execution_index, attempt))
    return [unpack(data)["text"] for (data,) in rows]


def test_results_come_back_whole_and_in_plan_order(tmp_path):
    plan = make_plan(levels=40, replicates=10)  # more than a block
    ledger, plan, order = begin(tmp_path, plan)
    event = {"timestamp": "t", "event_type": "e", "text": "x", "actor_id": "a", "meta": {}}
    for execution_index in range(len(order)):
        events = [{**event, "text": f"{execution_index}-{i}"} for i in range(execution_index % 3)]
        add(ledger, plan, order, execution_index, events=events, stdout=b"out\xff", stderr=b"")
    ledger.commit()
    reader = LedgerReader.open(tmp_path)
    results = list(reader.results())
    assert [result.run_id for result in results] == [spec.run_id for spec in plan.specs()]
    for plan_index, result in enumerate(results):
        execution_index = reader.execution_indexes[plan_index]
        assert result.outputs == {"turn": execution_index}
        assert result.evaluator_outputs == ({"metric_name": "m", "metric_value": execution_index},)
        details = [observation["text"] for observation in result.observations]
        assert details == [f"{execution_index}-{i}" for i in range(execution_index % 3)]
        assert (result.cost, result.latency, result.attempt) == (0.5, 1.5, 1)
        assert (result.executor, result.host) == ("serial", "here")
        assert (result.stdout, result.stderr) == ("out\ufffd", "")
        assert result.ended_at == "2024-05-01T10:00:01.500+00:00"
        assert result == reader.result(plan_index)
    reader.close()
    ledger.close()


def test_the_study_the_conditions_and_the_order_come_back(tmp_path):
    plan = finished(tmp_path)
    reader = LedgerReader.open(tmp_path)
    assert reader.study == plan.study
    assert reader.conditions == list(plan.conditions)
    assert list(reader.order) == list(plan.order())
    assert [reader.order[execution_index] for execution_index in reader.execution_indexes] == list(
        range(len(plan))
    )
    assert list(reader.done_indexes()) == list(range(len(plan)))
    reader.close()


def test_a_failure_keeps_its_kind_and_its_place(begun):
    ledger, plan, order = begun
    add(ledger, plan, order, 2, status="failed", kind=FailureKind.TIMEOUT, error_info="slow")
    ledger.commit()
    (result,) = reader_of(ledger).results()
    assert result.run_id == plan.spec(order[2]).run_id
    assert result.status is RunStatus.FAILED
    assert result.failure_kind is FailureKind.TIMEOUT
    assert result.error_info == "slow"


def test_facts_about_the_run_are_added_to_those_of_its_spec(begun):
    ledger, plan, order = begun
    add(ledger, plan, order, 0, execution_metadata={"model_name": "m"})
    ledger.commit()
    (result,) = reader_of(ledger).results()
    assert result.run_spec.execution_metadata["model_name"] == "m"
    assert result.run_spec.execution_metadata["agent_id"] == "default-agent"


def test_a_ledger_in_memory_works_the_same():
    ledger, plan, order = begin(None)
    add(ledger, plan, order, 0)
    ledger.commit()
    reader = reader_of(ledger)
    assert len(list(reader.results())) == 1
    assert reader.summary().counts == {"success": 1}
    assert ledger.notice is None
    ledger.close()


def test_a_session_that_began_after_the_reader_is_found(begun):
    ledger, plan, order = begun
    add(ledger, plan, order, 0)
    ledger.commit()
    reader = reader_of(ledger)
    assert [result.host for result in reader.results()] == ["here"]
    ledger.begin_session({"executor": "threads", "host": "there"})
    add(ledger, plan, order, 1)
    ledger.commit()
    assert {result.host for result in reader.results()} == {"here", "there"}
    assert reader.sessions[2]["executor"] == "threads"


def test_a_stray_file_in_the_folder_is_no_run(tmp_path):  # a known trap
    plan = finished(tmp_path)
    for name in ("run-0123456789ab.json", "ledger.sqlite.bak", "notes.txt"):
        (tmp_path / name).write_text('{"status": "success"}')
    reader = LedgerReader.open(tmp_path)
    assert len(list(reader.results())) == len(plan)
    reader.close()


# -- groups --


def test_nothing_counts_before_its_commit(begun):
    ledger, plan, order = begun
    other = LedgerReader.open(ledger.path.parent)
    add(ledger, plan, order, 0, events=[{"text": "x"}])
    assert ledger.committed == 0
    assert list(other.done_indexes()) == []
    ledger.commit()
    assert ledger.committed == 1
    assert list(other.done_indexes()) == [0]
    other.close()


def test_a_full_group_is_committed_by_itself(tmp_path):
    ledger, plan, order = begin(tmp_path, make_plan(replicates=100))
    for execution_index in range(store.COMMIT_RUNS - 1):
        add(ledger, plan, order, execution_index)
    assert ledger.committed == 0
    add(ledger, plan, order, store.COMMIT_RUNS - 1)
    assert ledger.committed == store.COMMIT_RUNS
    ledger.close()


@pytest.mark.parametrize("kind", ["result", "event", "attempt"])
def test_a_group_of_much_is_committed_before_it_fills_the_memory(begun, kind):
    ledger, plan, order = begun
    large = "x" * (store.COMMIT_BYTES // 3)
    for number in range(3):
        assert ledger._waiting_since or not number
        if kind == "result":
            add(ledger, plan, order, number, outputs=large)
        elif kind == "event":
            ledger.add_event(Emitted(0, 1, pack(large)))
        else:
            ledger.add_attempt(Finished(number, 1, outcome(outputs=large)))
    assert not ledger._waiting_since


def test_a_group_is_due_after_a_while_whatever_the_wall_clock_says(begun, monkeypatch):
    ledger, plan, order = begun
    assert not ledger.is_due
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    add(ledger, plan, order, 0)
    assert not ledger.is_due
    monkeypatch.setattr(time, "monotonic", lambda: now + 1.01 * store.COMMIT_S)
    assert ledger.is_due
    ledger.commit()
    assert not ledger.is_due


def test_an_event_is_safe_though_its_run_never_ends(begun):
    ledger, _, _ = begun
    ledger.add_event(Emitted(4, 1, pack({"text": "alive"})))
    ledger.commit()
    reader = LedgerReader.open(ledger.path.parent)
    assert read_event_texts(reader, 4, 1) == ["alive"]
    assert reader.last_attempt(4) == 1
    assert reader.last_attempt(3) == 0
    reader.close()


def test_events_of_an_attempt_that_was_cut_off_never_mix_with_those_of_its_repeat(tmp_path):
    ledger, plan, order = begin(tmp_path)
    for text in ("one", "two", "three"):
        ledger.add_event(Emitted(0, 1, pack({"text": text})))
    ledger.commit()
    ledger.close()
    ledger = open_ledger(tmp_path)
    add(ledger, plan, order, 0, events=[{"text": "again"}])
    ledger.commit()
    (result,) = reader_of(ledger).results()
    assert [event["text"] for event in result.observations] == ["again"]
    ledger.close()


def test_a_result_has_the_events_of_its_own_attempt(begun):
    ledger, plan, order = begun
    ledger.add_event(Emitted(0, 1, pack({"text": "first try"})))
    ledger.add_attempt(Finished(0, 1, outcome(status="broken", kind=FailureKind.BROKEN)))
    add(ledger, plan, order, 0, attempt=2, events=[{"text": "second try"}])
    ledger.commit()
    reader = reader_of(ledger)
    (result,) = reader.results()
    assert [event["text"] for event in result.observations] == ["second try"]
    assert read_event_texts(reader, 0, 1) == ["first try"]
    assert [attempt.attempt for attempt in reader.attempts(0)] == [1]


def test_threads_may_add_and_commit_at_once(tmp_path):
    ledger, plan, order = begin(tmp_path, make_plan(replicates=200))
    ended = threading.Event()

    def flush():
        while not ended.is_set():
            ledger.commit()

    thread = threading.Thread(target=flush)
    thread.start()
    for execution_index in range(len(order)):
        add(ledger, plan, order, execution_index, events=[{"text": str(execution_index)}])
    ended.set()
    thread.join()
    ledger.commit()
    assert ledger.committed == len(order)
    results = list(reader_of(ledger).results())
    assert sorted(result.outputs["turn"] for result in results) == list(range(len(order)))
    assert all(len(result.observations) == 1 for result in results)
    ledger.close()


@pytest.mark.parametrize(
    "odd", [{"cost": float("nan")}, {"latency": float("inf")}, {"tokens": 10**30}]
)
def test_an_odd_number_does_not_hold_up_its_group(begun, odd):
    ledger, plan, order = begun
    add(ledger, plan, order, 0, **odd)
    add(ledger, plan, order, 1)
    ledger.commit()
    assert len(list(reader_of(ledger).results())) == 2
    assert reader_of(ledger).summary().counts == {"success": 2}


class Interrupted:
    """A connection whose user presses Ctrl-C just before or after one statement."""

    def __init__(self, connection, statement, when):
        self.connection, self.statement, self.when = connection, statement, when

    def execute(self, statement, *values):
        is_the_one = statement.startswith(self.statement)
        if is_the_one and self.when == "before":
            self.statement = "never"
            raise KeyboardInterrupt
        result = self.connection.execute(statement, *values)
        if is_the_one:
            self.statement = "never"
            raise KeyboardInterrupt
        return result

    def __getattr__(self, name):
        return getattr(self.connection, name)


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_in_a_commit_loses_nothing_and_doubles_nothing(begun, statement, when):
    ledger, plan, order = begun
    plain = ledger.connection
    add(ledger, plan, order, 0)
    ledger.connection = Interrupted(plain, statement, when)
    with pytest.raises(KeyboardInterrupt):
        ledger.commit()
    ledger.connection = plain
    add(ledger, plan, order, 1)
    ledger.commit()
    assert ledger.committed == 2
    assert list(reader_of(ledger).done_indexes()) == [0, 1]


# -- attempts, retries, scores --


def test_a_result_that_is_replaced_stays_among_the_attempts(begun):
    ledger, plan, order = begun
    add(ledger, plan, order, 0, status="failed", kind=FailureKind.EXIT, stdout=b"bye")
    add(ledger, plan, order, 1)
    ledger.commit()
    old = pack({"rows": [{"metric_name": "old"}], "metrics": {}})
    ledger.connection.execute("INSERT INTO scores VALUES (0, 'judge', ?)", (old,))
    reader = reader_of(ledger)
    ledger.reruns = dict.fromkeys(reader.indexes_with_status(RunStatus.FAILED), "failed")
    add(ledger, plan, order, 0, attempt=2)
    assert reader.result(order[0]).status == "failed"  # until there is another
    ledger.commit()
    assert list(reader.done_indexes()) == [0, 1]
    (attempt,) = reader.attempts(0)
    assert (attempt.attempt, attempt.status) == (1, "failed")
    assert attempt.failure_kind is FailureKind.EXIT
    assert attempt.details["outputs"] == {"turn": 0}
    assert attempt.stdout == "bye"
    assert reader.last_attempt(0) == 2
    assert reader.result(order[0]).attempt == 2
    assert reader.result(order[0]).evaluator_outputs[0]["metric_name"] == "m"  # not the old score


def test_later_verdicts_take_the_place_of_the_first(begun):
    ledger, plan, order = begun
    add(ledger, plan, order, 0)
    ledger.commit()
    scores = {"rows": [{"metric_name": "new"}], "metrics": {"primary_outcome": 3}}
    ledger.write_scores("judge", [(0, pack(scores))])
    (result,) = reader_of(ledger).results()
    assert result.evaluator_outputs == ({"metric_name": "new"},)
    assert result.metrics == {"score": 0.0, "primary_outcome": 3}


def test_execution_indexes_with_a_status_are_those_in_the_plan(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "INDEX_BATCH", 2)
    ledger, plan, order = begin(tmp_path)
    for execution_index in range(6):
        add(
            ledger,
            plan,
            order,
            execution_index,
            status="failed" if execution_index % 2 else "success",
        )
    ledger.commit()
    order[1] = REMOVED
    ledger.write_plan({}, plan.conditions, order)
    assert list(reader_of(ledger).indexes_with_status("failed")) == [3, 5]
    assert list(reader_of(ledger).done_indexes()) == list(range(6))
    ledger.close()


# -- at a glance --


def test_a_summary_counts_what_is_in_the_plan_and_all_that_was_spent(begun):
    ledger, plan, order = begun
    statuses = ["success", "success", "failed", "broken"]
    kinds = [None, None, FailureKind.EXCEPTION, FailureKind.KILLED]
    for execution_index, (status, kind) in enumerate(zip(statuses, kinds, strict=True)):
        add(ledger, plan, order, execution_index, status=status, kind=kind, cost=1.0, tokens=10)
    ledger.add_attempt(Finished(3, 1, outcome(status="broken", cost=0.25, tokens=5)))
    ledger.set_live(pack({"running": 2}))
    ledger.commit()
    summary = reader_of(ledger).summary()
    assert summary.counts == {"success": 2, "failed": 1, "broken": 1}
    assert summary.failures == {"exception": 1, "killed": 1}
    assert (summary.planned, summary.done, summary.pending) == (6, 4, 2)
    assert (summary.cost_usd, summary.tokens) == (4.25, 45)
    assert (summary.skipped, summary.left_out, summary.is_running) == (0, 0, False)
    assert summary.live == {"running": 2}
    assert summary.last_session["executor"] == "serial"
    assert summary.to_dict()["pending"] == 2
    order[0] = order[3] = REMOVED
    ledger.write_plan({}, plan.conditions, order)
    reader = reader_of(ledger)
    summary = reader.summary()
    assert summary.counts == {"success": 1, "failed": 1}
    assert summary.failures == {"exception": 1}
    assert (summary.planned, summary.left_out, reader.left_out) == (4, 2, 2)
    assert (summary.cost_usd, summary.tokens) == (4.25, 45)  # money spent is spent


@given(
    levels=st.integers(1, 5),
    replicates=st.integers(1, 5),
    most=st.none() | st.integers(1, 30),
    policy=st.sampled_from(["balanced", "refuse"]),
)
def test_a_summary_knows_the_size_of_the_plan_without_making_it(levels, replicates, most, policy):
    budget = RunBudget(replicates=replicates, max_runs=most, max_runs_policy=policy)
    plan = make_plan(make_study(levels=levels, run_budget=budget))
    ledger, plan, _ = begin(None, plan)
    reader = reader_of(ledger)
    summary = reader.summary()
    assert summary.planned == plan.runnable
    assert summary.skipped == len(plan) - plan.runnable
    assert "conditions" not in vars(reader)
    ledger.close()


def test_a_summary_reads_no_body(begun):
    ledger, plan, order = begun
    add(ledger, plan, order, 0)
    ledger.add_attempt(Finished(0, 1, outcome()))
    ledger.commit()
    read = set()

    def watch(action, table, column, *_):
        if action == sqlite3.SQLITE_READ:
            read.add((table, column))
        return sqlite3.SQLITE_OK

    ledger.connection.set_authorizer(watch)
    reader_of(ledger).summary()
    ledger.connection.set_authorizer(None)
    assert ("results", "status") in read
    assert not {("bodies", "body"), ("attempts", "body"), ("events", "data")} & read
    assert not {table for table, _ in read} & {"bodies", "events", "conditions"}
    query = "EXPLAIN QUERY PLAN SELECT total(cost_usd), total(tokens) FROM attempts"
    assert "COVERING INDEX" in ledger.connection.execute(query).fetchone()[3]


# -- reading while it is written --


def test_a_reader_in_another_process_sees_whole_groups_only(begun):
    ledger, plan, order = begun
    watch = """
        import sys
        from pathlib import Path
        from fairtrial.study.ledger.reader import LedgerReader
        reader = LedgerReader.open(Path(sys.argv[1]))
        print(len(list(reader.results())), reader.summary().done)
    """
    add(ledger, plan, order, 0)
    ledger.commit()
    add(ledger, plan, order, 1)
    assert run_script(watch, ledger.path.parent).split() == ["1", "1"]
    ledger.connection.execute("BEGIN IMMEDIATE")  # in the middle of writing
    ledger.connection.execute("DELETE FROM results")
    assert run_script(watch, ledger.path.parent).split() == ["1", "1"]
    ledger.connection.execute("ROLLBACK")


def test_a_slow_reader_holds_up_neither_the_writer_nor_its_log(tmp_path):
    ledger, plan, order = begin(tmp_path, make_plan(replicates=700))
    for execution_index in range(1000):
        add(ledger, plan, order, execution_index)
    ledger.commit()
    reader = LedgerReader.open(tmp_path)
    slow = [reader.results(), reader.done_indexes(), reader.indexes_with_status("success")]
    for results in slow:
        next(results)
    for execution_index in range(1000, len(order)):
        add(ledger, plan, order, execution_index)
    ledger.commit()
    busy, pages, folded = ledger.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (busy, pages, folded) == (0, 0, 0)
    reader.close()
    ledger.close()


def test_the_log_is_folded_back_as_it_grows_and_gone_after_a_clean_end(tmp_path):
    ledger, plan, order = begin(tmp_path, make_plan(replicates=700))
    log = tmp_path / f"{LEDGER_NAME}-wal"
    for execution_index in range(len(order)):
        add(ledger, plan, order, execution_index, outputs="x" * 10_000)
    assert (tmp_path / LEDGER_NAME).stat().st_size > 15e6
    assert log.stat().st_size < 10e6
    ledger.close()
    assert not log.exists()


def test_a_clean_end_empties_the_log_even_with_a_reader(tmp_path):
    ledger, plan, order = begin(tmp_path)
    add(ledger, plan, order, 0)
    ledger.commit()
    reader = LedgerReader.open(tmp_path)
    ledger.close()
    assert (tmp_path / f"{LEDGER_NAME}-wal").stat().st_size == 0
    assert list(reader.done_indexes()) == [0]
    reader.close()
    assert [path.name for path in tmp_path.iterdir()] == [LEDGER_NAME]


def test_large_results_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_BYTES", 50_000)
    ledger, plan, order = begin(tmp_path, make_plan(replicates=20))
    for execution_index in range(len(order)):
        add(
            ledger,
            plan,
            order,
            execution_index,
            outputs="x" * 20_000,
            events=[{"text": "y" * 20_000}],
        )
    ledger.commit()
    reader = LedgerReader.open(tmp_path)
    sizes = []
    rows_of = LedgerReader._rows

    def watch(self, execution_indexes, most_bytes):
        batch = rows_of(self, execution_indexes, most_bytes)
        if batch is not None:
            sizes.append(len(execution_indexes))
        return batch

    monkeypatch.setattr(LedgerReader, "_rows", watch)
    ids = [result.run_id for result in reader.results()]
    assert ids == [spec.run_id for spec in plan.specs()]
    assert max(sizes) == 1
    reader.close()
    ledger.close()


def test_a_result_of_another_run_is_damage_not_a_result(begun):
    ledger, plan, order = begun
    add(ledger, plan, order, 0)
    ledger.commit()
    for change in ("run_id = 'run-000000000000'", "seed = seed + 1"):
        ledger.connection.execute("BEGIN")
        ledger.connection.execute(f"UPDATE results SET {change}")
        with pytest.raises(LedgerError, match=r"damaged .*execution index 0"):
            list(reader_of(ledger).results())
        ledger.connection.execute("ROLLBACK")


def test_a_plan_that_changes_takes_the_place_of_the_other(begun):
    ledger, _, _ = begun
    other = make_plan(levels=5, replicates=1)
    write_plan(ledger, other)
    reader = reader_of(ledger)
    assert reader.conditions == list(other.conditions)
    assert len(reader.plan) == 5


def test_a_ledger_that_is_deleted_under_way_is_noticed(tmp_path):
    ledger = open_ledger(tmp_path)
    try:
        (tmp_path / "ledger.sqlite").rename(tmp_path / "elsewhere.sqlite")
        ledger.set_live(b"x")
        with pytest.raises(LedgerError, match=r"was moved or deleted .*`fairtrial resume"):
            ledger.commit()
        (tmp_path / "elsewhere.sqlite").rename(tmp_path / "ledger.sqlite")
        ledger.commit()
    finally:
        ledger.close()

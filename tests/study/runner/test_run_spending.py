"""What a study has spent: the same figure wherever it is shown, however the study ended."""

import json
import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from ledger_kit import add, begin, finished
from run_kit import make_study, read_table, run as run_here
from spending_kit import fingerprint, spending
from test_run_payments import EACH, cut_off, pay, small

from fairtrial import AgentOutput, Broken, Factor, FairtrialError, RunBudget
from fairtrial.study.agents.journal import Journal
from fairtrial.study.ledger import LEDGER_NAME, LedgerReader, reader as reading
from fairtrial.study.ledger.journal_store import JournalStore

TOKENS = EACH["input_tokens"] + EACH["output_tokens"]


@pytest.fixture
def spent(run, tmp_path):
    """How many entries were paid for, as everybody tells it."""

    def spent():
        cost_usd, tokens = spending(run, tmp_path / "out", tmp_path)
        assert cost_usd / EACH["cost_usd"] == tokens / TOKENS
        return tokens // TOKENS

    return spent


def kills(task):
    """An agent that pays, and whose study is killed then."""
    pay(task)
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()


def pays(task):
    pay(task)
    return {"x": 0}


@pytest.fixture
def killed(tmp_path):
    """A study that was killed when one run was done, and the second had paid."""
    study = small(tmp_path / "out", 3)
    run_here(study, pays, only="x == 0")
    cut_off(study, kills, executor="processes", resume=True, only="x == 1")
    return study


def test_costs_of_killed_attempts_are_reported_before_and_after_a_resume(killed, spent, tmp_path):
    assert spent() == 2
    cut_off(killed, kills, executor="processes", resume=True, only="x == 1")
    assert spent() == 3
    results = run_here(killed, pays, resume=True, only="x == 1")
    assert spent() == 4
    assert [item.attempt for item in results.reader.attempts(1)] == [1, 2]
    run_here(killed, pays, resume=True)
    assert spent() == 5
    assert [row["cost_usd"] for row in read_table(tmp_path / "out", "runs.csv")] == [
        "0.25",
        "0.75",
        "0.25",
    ]


def test_costs_of_running_attempts_are_reported(tmp_path, spent):
    reported = []

    def agent(task):
        for _ in range(2):
            pay(task)
            with closing(LedgerReader.open(tmp_path / "out")) as reader:
                reported.append(reader.summary().tokens // TOKENS)
        if len(reported) == 2:
            raise Broken("again")
        return {"x": 0}

    run_here(small(tmp_path / "out", retries=1), agent, executor="serial", retry_wait_s=0.001)
    assert (reported, spent()) == ([1, 2, 3, 4], 4)


def test_a_run_that_leaves_the_plan_and_comes_back_has_paid_once(killed, spent):
    def plan(*levels, **settings):
        factors = (Factor("x", levels=levels),)
        how = {"resume": True, "accept_changes": True, "limit": 1, **settings}
        return run_here(replace(killed, factors=factors), pays, **how)

    plan(0, 2)
    assert spent() == 3
    plan(0, 1, 2, only="x == 0")
    assert spent() == 3
    plan(0, 1, 2, only="x == 0")
    assert spent() == 3
    results = plan(0, 1, 2)
    assert [(result.status, result.cost) for result in results][1] == ("success", 0.5)
    assert spent() == 4


def fails(task):
    """Pays, and then comes to nothing but for the first."""
    pay(task)
    if task.factors["x"]:
        raise ValueError("it was for nothing")
    return {"x": 0}


def test_a_result_that_gave_way_to_another_is_paid_for_once(tmp_path, spent):
    study = small(tmp_path / "out", 2)
    run_here(study, fails)
    run_here(study, fails, resume=True, retry="failed")
    assert spent() == 3
    run_here(study, pays, resume=True, retry="failed")
    assert spent() == 4


def test_a_ledger_whose_entries_are_not_marked_as_told_is_summed_up_once(tmp_path, spent):
    """As ledgers were written before entries were."""
    study = small(tmp_path / "out", 3)
    run_here(study, fails, only="x < 2")
    run_here(study, fails, resume=True, retry="failed", only="x < 2")
    with closing(sqlite3.connect(tmp_path / "out" / LEDGER_NAME)) as connection:
        connection.execute("UPDATE journal SET attempt = number + 1")
        connection.commit()
    assert spent() == 3
    run_here(study, pays, resume=True)
    assert spent() == 4
    run_here(study, pays, resume=True, retry="failed")
    assert spent() == 5


def test_costs_without_a_journal_entry_count_as_well(tmp_path, spent):
    def agent(task):
        is_again = (tmp_path / "again").exists()
        return AgentOutput({"x": 0}, metrics=EACH, success=is_again, error="" if is_again else "no")

    study = small(tmp_path / "out", 2)
    run_here(study, agent)
    (tmp_path / "again").touch()
    run_here(study, agent, resume=True, retry="failed", limit=1)
    assert spent() == 3


@pytest.mark.parametrize(
    "how",
    [
        {"resume": False},
        {"checkpoint": False},
        {"only": "x == 7"},
        {"only": "colour == 1"},
        {"study": {"factors": (Factor("x", levels=(0, 1, 2, 3)),)}},
        {"study": {"study_id": "another"}},
        {"study": {"run_budget": RunBudget(replicates=1, max_runs=1)}},
        {"agent_bindings": {}},
        {"executor": "nobody"},
    ],
    ids=lambda how: "-".join([*how, *how.get("study", ())]),
)
def test_a_refused_resume_changes_nothing(killed, tmp_path, how):
    before = fingerprint(tmp_path / "out")
    settings = {"resume": True, **how}
    study = replace(killed, **settings.pop("study", {}))
    with pytest.raises(FairtrialError):
        run_here(study, pays, **settings)
    assert fingerprint(tmp_path / "out") == before


def test_commands_that_are_refused_change_nothing(killed, run, tmp_path):
    (tmp_path / "other.yaml").write_text(json.dumps({"study_id": "o", "title": "t"}))
    before = fingerprint(tmp_path / "out")
    for words in (
        ("resume", "out"),  # nothing is bound to its names
        ("retry", "out", "--failed"),
        ("resume", "out", "--set", "run_budget.max_cost_usd=-1"),
        ("run", "other.yaml", "--output", "out"),
        ("run", "other.yaml", "--output", "out", "--resume"),
        ("rescore", "out"),
    ):
        code, _, err = run(*words)
        assert code in (2, 3), err
        assert fingerprint(tmp_path / "out") == before, words


def test_a_study_that_spent_nothing_says_so(tmp_path, run):
    study = make_study(tmp_path / "out")
    run_here(study)
    reported = json.loads((tmp_path / "out/manifest.json").read_text())["spent"]
    assert reported == {"cost_usd": 0, "tokens": 0, "not_in_runs": {"cost_usd": 0, "tokens": 0}}
    assert "cost: none recorded" in run("report", "out")[1]


def test_an_attempt_that_ends_while_sums_are_read_counts_once(tmp_path, monkeypatch):
    ledger, plan, order = begin(tmp_path)
    spec = plan.spec(order[0])
    store = JournalStore(ledger)
    Journal((), lambda data: store.add([(spec, 1, data)])).append("reply", {}, **EACH)
    read = reading.unreported_payments

    def read_late(*given):
        if not ledger.committed:
            add(ledger, plan, order, 0, cost=0.25, tokens=TOKENS)
            ledger.commit()
        return read(*given)

    monkeypatch.setattr(reading, "unreported_payments", read_late)
    with closing(LedgerReader.open(tmp_path)) as reader:
        reported = [reader.summary() for _ in range(2)]
    ledger.close()
    assert [(summary.done, summary.cost_usd, summary.tokens) for summary in reported] == [
        (0, 0.25, TOKENS),
        (1, 0.25, TOKENS),
    ]


def test_a_ledger_from_before_there_were_journals_is_summed_up(tmp_path):
    finished(tmp_path)
    with closing(sqlite3.connect(tmp_path / LEDGER_NAME)) as connection:
        connection.execute("DROP TABLE journal")
    with closing(LedgerReader.open(tmp_path)) as reader:
        assert reader.summary().cost_usd == 3.0

"""Ceilings count what is under way; studies that can't succeed stop early."""

import threading

import pytest
from run_kit import make_study, run

from fairtrial import AgentBinding, Broken, open_results
from fairtrial.core import AccessError

WAIT_S = 30.0


def statuses(results):
    return [str(result.status) for result in results]


def charge(usd, tokens=0):
    return {"output": {"x": 1}, "metrics": {"cost_usd": usd, "input_tokens": tokens}}


class Counted:
    """An agent that costs the same every time, and knows how many ran at once."""

    def __init__(self, usd=1.0, company=1):
        self.usd, self.most, self.now = usd, 0, 0
        self.lock, self.company = threading.Lock(), threading.Semaphore(0)
        self.wanted = company

    def __call__(self, task):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now >= self.wanted:
                for _ in range(self.wanted):
                    self.company.release()
        self.company.acquire(timeout=0.3)
        with self.lock:
            self.now -= 1
        return charge(self.usd)


# -- ceilings --


def test_what_is_reserved_for_runs_under_way_counts(tmp_path):
    study = make_study(tmp_path / "out", range(12), 1, budget={"max_cost_usd": 5.5})
    results = run(study, Counted(), executor="threads", parallelism=4)
    # Of the first wave, nothing is known; from then on every run under way has its dollar reserved.
    assert (results.stopped, results.reader.summary().cost_usd) == ("budget", 5.0)


def test_the_reason_names_what_is_spent_and_reserved_and_the_ceiling(tmp_path):
    study = make_study(tmp_path / "out", budget={"max_cost_usd": 1.0})
    results = run(study, lambda task: charge(0.4))
    assert results.stop_reason == (
        "$0.80 spent, $0.40 reserved for the next run of 'a', of $1.00 (run_budget.max_cost_usd)"
    )
    study = make_study(tmp_path / "tokens", budget={"max_tokens": 100})
    results = run(study, lambda task: charge(0.0, 60))
    assert results.stop_reason.startswith("60 tokens spent, 60 tokens reserved")


def test_estimates_of_earlier_sessions_are_kept(tmp_path):
    study = make_study(tmp_path / "out", budget={"max_cost_usd": 1.0})
    run(study, lambda task: charge(0.4), limit=2)
    results = run(study, lambda task: charge(0.4), resume=True)
    assert (len(results), results.stopped) == (2, "budget")


def test_the_first_run_is_alone_so_that_many_slots_do_not_break_the_ceiling(tmp_path):
    study = make_study(tmp_path / "out", range(40), 1, budget={"max_cost_usd": 1.0})
    results = run(study, Counted(usd=0.45, company=16), executor="threads", parallelism=16)
    assert (results.stopped, results.reader.summary().cost_usd) == ("budget", 0.9)


def test_runs_that_break_for_free_allow_more_at_once(tmp_path):
    agent = Counted(usd=0.0, company=8)

    def breaks(task):
        agent(task)
        raise Broken("no answer")

    budget = {"max_cost_usd": 1.0, "retries": 0}
    study = make_study(tmp_path / "out", range(40), 1, budget=budget)
    run(study, breaks, executor="threads", parallelism=16, keep_going=True)
    assert 1 < agent.most <= 8


def test_few_runs_start_before_the_first_one_shows_what_they_cost(tmp_path):
    agent = Counted(usd=0.01, company=20)
    study = make_study(tmp_path / "out", range(40), 1, budget={"max_cost_usd": 100.0})
    run(study, agent, executor="threads", parallelism=20)
    assert agent.most > 8  # later, as the estimates allow
    agent = Counted(usd=2.0, company=20)
    study = make_study(tmp_path / "dear", range(40), 1, budget={"max_cost_usd": 10.0})
    results = run(study, agent, executor="threads", parallelism=20)
    assert results.reader.summary().cost_usd <= 10.0


def test_a_stated_maximum_is_reserved_from_the_first_run_on(tmp_path):
    study = make_study(
        tmp_path / "out", range(12), 1,
        budget={"max_cost_usd": 5.0, "strict": True},
        agents={"a": AgentBinding("m:f", max_cost_usd=1.5)},
    )  # fmt: skip
    results = run(study, Counted(), executor="threads", parallelism=12)
    summary = results.reader.summary()
    assert results.stopped == "budget"
    assert 3.0 <= summary.cost_usd <= 5.0


def test_a_strict_ceiling_without_a_stated_maximum_starts_one_by_one(tmp_path):
    agent = Counted(usd=0.1, company=99)
    study = make_study(tmp_path / "out", range(4), 1, budget={"max_cost_usd": 10.0, "strict": True})
    run(study, agent, executor="threads", parallelism=4, limit=3)
    assert agent.most == 1


def test_free_runs_are_never_held_back(tmp_path):
    study = make_study(tmp_path / "out", range(30), 1, budget={"max_cost_usd": 1.0})
    results = run(study, executor="threads", parallelism=30)
    assert (len(results), results.stopped) == (30, None)


@pytest.mark.parametrize("executor", ["serial", "processes", "threads"])
def test_ceilings_hold_in_all_executors(tmp_path, executor):
    study = make_study(tmp_path / "out", budget={"max_cost_usd": 1.0})
    results = run(study, lambda task: charge(0.4), executor=executor)
    assert (len(results), results.stopped) == (2, "budget")


def test_wrong_maxima_are_refused():
    from fairtrial.core import StudyError

    with pytest.raises(StudyError, match="max_cost_usd: must be above 0"):
        AgentBinding("m:f", max_cost_usd=0.0)


# -- repeated failures --


def fails(task):
    raise ValueError(f"no module at /tmp/x{task.factors['x']}/y (attempt {task.run_spec.seed})")


@pytest.mark.parametrize("executor", ["serial", "processes", "threads"])
def test_a_study_pauses_when_the_first_runs_all_fail_in_the_same_way(tmp_path, executor):
    study = make_study(tmp_path / "out", range(40), 1)
    with pytest.warns(UserWarning, match="the first 10 runs of 'a' in this session all failed"):
        results = run(study, fails, executor=executor)
    assert results.stopped == "repeated"
    assert 10 <= len(results) < 40
    results = run(study, fails, resume=True, keep_going=True, executor=executor)
    assert (results.stopped, len(results)) == (None, 40)


def test_other_failures_are_no_reason_to_pause(tmp_path):
    def agent(task):
        words = ["red", "green", "blue", "cyan"]
        raise ValueError(f"no {words[task.factors['x'] % 4]}")

    results = run(make_study(tmp_path / "out", range(40), 1), agent)
    assert (results.stopped, len(results)) == (None, 40)


def test_one_success_among_the_first_is_enough_to_go_on(tmp_path):
    calls = []

    def agent(task):
        calls.append(task.factors["x"])
        if len(calls) == 4:
            return {"x": 1}
        raise ValueError("no")

    study = make_study(tmp_path / "out", range(40), 1)
    results = run(study, agent)
    assert (results.stopped, len(results)) == (None, 40)


def test_broken_runs_that_repeat_pause_it_too(tmp_path):
    def agent(task):
        raise Broken("no network")

    study = make_study(tmp_path / "out", range(30), 1, budget={"retries": 0})
    with pytest.warns(UserWarning, match="all broke in the same way"):
        results = run(study, agent)
    assert (results.stopped, len(results)) == ("repeated", 10)
    results = run(study, resume=True)
    assert statuses(results) == ["success"] * 30


# -- keys and quotas --


@pytest.mark.parametrize("executor", ["serial", "processes", "threads"])
def test_a_refused_key_breaks_the_run_and_stops_at_once(tmp_path, executor):
    def agent(task):
        raise AccessError("the environment variable MY_KEY is not set")

    study = make_study(tmp_path / "out", range(30), 1)
    with pytest.warns(UserWarning, match="MY_KEY"):
        results = run(study, agent, executor=executor)
    assert results.stopped == "refused"
    assert len(results) < 30
    assert {(str(r.status), str(r.failure_kind)) for r in results} == {("broken", "refused")}
    assert {result.attempt for result in results} == {1}
    with open_results(tmp_path / "out") as stored:
        assert stored[0].failure_kind == "refused"
    assert statuses(run(study, resume=True)) == ["success"] * 30


def test_errors_of_well_known_libraries_count_as_refused(tmp_path):
    class AuthenticationError(Exception):
        status_code = 401

    AuthenticationError.__module__ = "openai"

    def agent(task):
        raise AuthenticationError("Incorrect API key provided")

    with pytest.warns(UserWarning, match="OPENAI_API_KEY"):
        results = run(make_study(tmp_path / "out"), agent)
    assert results[0].failure_kind == "refused"


def test_a_403_of_a_website_is_the_agents_own_failure(tmp_path):
    class HTTPStatusError(Exception):
        status_code = 403

    HTTPStatusError.__module__ = "httpx"

    def agent(task):
        raise HTTPStatusError("Forbidden")

    results = run(make_study(tmp_path / "out"), agent)
    assert set(statuses(results)) == {"failed"}

"""Studies that stop when they know: looks in the run loop, decisions, skipped runs, resuming."""

import os
import re
import signal

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from stopping_kit import Answer, decisions_of, go, hypothesis, looks_of, make_study

from fairtrial import judge_hypotheses
from fairtrial.study import LookFinished, full_report, open_results
from fairtrial.study.report import report_facts
from fairtrial.study.runner import look_gate


def verdicts(folder):
    with open_results(folder) as results:
        tests = judge_hypotheses(results.study, results.conditions, results)
        return [(str(test.verdict), test.why, test.estimate, test.interval) for test in tests]


def report(folder):
    with open_results(folder) as results:
        return full_report(results.study, results.conditions, results)


def test_a_clear_effect_stops_the_study_early(tmp_path):
    events = []
    results = go(make_study(tmp_path, effect=4.0), on_event=events.append)
    summary = results.reader.summary()
    assert decisions_of(tmp_path)[-1] == ["supported"]
    assert len(results) == summary.planned < 24
    assert summary.decided_early == 24 - len(results)
    assert summary.pending == 0
    assert all(isinstance(event, LookFinished) for event in events)
    assert str(events[-1]).startswith(f"look {len(events)} of 4 (")
    assert "h1 supported" in str(events[-1])
    assert "runs are not needed any more" in str(events[-1])


def test_skipped_runs_are_in_the_tables(tmp_path):
    results = go(make_study(tmp_path, effect=4.0))
    statuses = [row["status"] for row in results.runs]
    assert statuses.count("skipped") == 24 - len(results)
    assert statuses.count("success") == len(results)


def test_a_hopeless_claim_stops_for_futility(tmp_path):
    claim = hypothesis("h1", "worked", "plain", direction="greater")
    go(make_study(tmp_path, effect=-1.0, hypotheses=[claim], problems=24))
    assert decisions_of(tmp_path)[-1][0] in ("futile", "contradicted")
    quiet = make_study(
        tmp_path / "whole",
        effect=-0.2,
        hypotheses=[claim],
        problems=24,
        stopping={"looks": 4, "spending": "pocock", "futility": False},
    )
    go(quiet)
    assert len(decisions_of(tmp_path / "whole")) == 4


def test_futility_is_inconclusive_in_the_report(tmp_path):
    claim = hypothesis("h1", "worked", "plain", direction="greater")
    go(make_study(tmp_path, effect=-0.2, hypotheses=[claim], problems=24))
    assert decisions_of(tmp_path)[-1] == ["futile"]
    ((verdict, why, *_),) = verdicts(tmp_path)
    assert verdict == "inconclusive"
    assert "for futility: the chance that the last look would show it was" in why


def test_a_decided_claim_costs_nothing_while_others_continue(tmp_path):
    claims = [hypothesis("big", "worked", "plain"), hypothesis("small", "other", "plain")]
    study = make_study(
        tmp_path,
        styles=("plain", "worked", "other"),
        hypotheses=claims,
        problems=24,
        stopping={"looks": 6, "spending": "pocock", "futility": False},
    )
    go(study, Answer(effects={"worked": 5.0, "other": 0.3}))
    looks = looks_of(tmp_path)
    names = [[claim.hypothesis_id for claim in claims] for _, _, _, claims in looks]
    first = next(index for index, each in enumerate(names) if each == ["small"])
    assert names[0] == ["big", "small"]
    assert looks[first - 1][2] > 0  # the runs of `worked` after that look
    with open_results(tmp_path) as results:
        styles = [result.run_spec.condition_id for result in results if result.status == "success"]
        ids = {c.condition_id: c.factor_assignments["style"] for c in results.conditions}
    counts = {style: sum(ids[each] == style for each in styles) for style in ids.values()}
    assert counts["worked"] < counts["plain"] == counts["other"]


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_looks_are_the_same_with_every_executor(tmp_path, executor):
    study = make_study(tmp_path / "serial", effect=1.0)
    go(study)
    other = make_study(tmp_path / executor, effect=1.0)
    go(other, executor=executor, parallelism=3)
    assert looks_of(tmp_path / executor) == looks_of(tmp_path / "serial")


def test_no_run_of_the_next_batch_starts_before_the_look(tmp_path):
    seen = []
    study = make_study(tmp_path, problems=8, stopping={"looks": 3, "futility": False})
    agent = Answer(before=lambda task: seen.append(("run", task.problem.problem_id)))
    go(
        study,
        agent,
        executor="threads",
        parallelism=4,
        on_event=lambda event: seen.append(("look", event.look.number)),
    )
    looks = [index for index, (kind, _) in enumerate(seen) if kind == "look"]
    assert looks == [8, 13, 18]
    problems = [{name for _, name in seen[:8]}, {name for _, name in seen[9:13]}]
    assert len(problems[0]) == 4
    assert problems[0].isdisjoint(problems[1])


def test_the_last_look_uses_the_last_bound(tmp_path):
    study = make_study(tmp_path, effect=0.9, problems=10, stopping={"looks": 2})
    go(study)
    with open_results(tmp_path) as results:
        (test,) = judge_hypotheses(results.study, results.conditions, results)
    assert (test.look, test.looks) == (2, 2)
    assert test.level < 0.05
    assert (str(test.verdict) == "supported") == (test.p_value < test.level)
    assert "(look 2 of 2, the last)" in test.why


def test_the_interval_is_wider_than_that_of_one_look(tmp_path):
    widths = {}
    for looks in (1, 4):
        folder = tmp_path / str(looks)
        stopping = {"looks": looks, "spending": "pocock", "futility": False}
        go(make_study(folder, problems=24, stopping=stopping))
        ((*_, interval),) = verdicts(folder)
        widths[looks] = interval[1] - interval[0]
    assert widths[4] > 1.1 * widths[1]


def test_claims_share_alpha(tmp_path):
    claims = [hypothesis(f"h{n}", "worked", "plain") for n in range(4)]
    go(make_study(tmp_path, hypotheses=claims))
    go(make_study(tmp_path / "one"))
    many, one = (looks_of(folder)[0][3][0].level for folder in (tmp_path, tmp_path / "one"))
    assert many < one / 3
    alone = make_study(
        tmp_path / "none", hypotheses=claims, plan={"multiple_comparison_policy": "none"}
    )
    go(alone)
    assert looks_of(tmp_path / "none")[0][3][0].level == one


def test_confidence_sequences_decide_at_any_look(tmp_path):
    stopping = {"looks": 8, "spending": "anytime"}
    go(make_study(tmp_path, effect=4.0, problems=20, stopping=stopping))
    looks = looks_of(tmp_path)
    assert decisions_of(tmp_path)[-1] == ["supported"]
    assert len(looks) < 8
    low, high = looks[-1][3][0].interval
    assert not low <= 0 <= high


def test_the_report_lists_the_looks(tmp_path):
    go(make_study(tmp_path, effect=4.0))
    text = report(tmp_path)
    number = len(looks_of(tmp_path))
    assert "## Interim looks" in text
    assert "Planned before the first result: 4 looks, after 4, 7, 9, 12 problems" in text
    assert f"(stopped at look {number} of 4)" in text
    assert "95% repeated CI" in text
    assert f"The study stopped at look {number} of 4: every claim was decided" in text
    assert "There are none: the planned looks ended the study." in text
    assert "an interim look at an unfinished study" not in text
    with open_results(tmp_path) as results:
        facts = report_facts(results.study, results.conditions, results)
    assert facts["pending"] == 0
    assert facts["deviations"] == []
    assert len(facts["looks"]["made"]) == number


def test_a_bound_at_a_look_is_called_a_repeated_one(tmp_path):
    claim = hypothesis("h1", "worked", "plain", direction="greater")
    go(make_study(tmp_path, effect=4.0, hypotheses=[claim]))
    text = report(tmp_path)
    assert re.search(r"at least [\d.]+ by a 95% repeated bound", text)
    assert "% confidence" not in text


def test_a_report_between_looks_decides_nothing(tmp_path):
    study = make_study(tmp_path, effect=4.0)
    go(study, limit=6)
    assert looks_of(tmp_path) == []
    ((verdict, why, *_),) = verdicts(tmp_path)
    assert (verdict, why) == (
        "inconclusive",
        "no planned look was made yet; the first of 4 is still to come",
    )
    assert "**Not finished**" in report(tmp_path)


def test_results_without_a_ledger_are_tested_at_the_last_bound(tmp_path):
    study = make_study(tmp_path, stopping={"looks": 4, "futility": False})
    results = go(study)
    (test,) = judge_hypotheses(study, results.conditions, list(results))
    assert (test.look, test.looks) == (4, 4)


def test_a_limit_ends_the_session_and_resuming_makes_the_look(tmp_path):
    study = make_study(tmp_path, effect=4.0)
    go(study, limit=8)  # the first batch
    assert len(looks_of(tmp_path)) == 1
    go(study, resume=True, limit=1)
    assert len(looks_of(tmp_path)) == 1
    go(study, resume=True)
    assert decisions_of(tmp_path)[-1] == ["supported"]


def test_a_pilot_runs_what_it_selects_before_any_look(tmp_path):
    study = make_study(tmp_path)
    results = go(study, only="replicate == 1 and style == 'plain'")
    assert len(results) == 12
    assert looks_of(tmp_path) == []


def test_a_budget_stops_between_looks(tmp_path):
    study = make_study(tmp_path, run_budget={"max_cost_usd": 5.0})

    def pay(task):
        answer = Answer()(task)
        return {**answer, "metrics": {**answer["metrics"], "cost_usd": 0.5}}

    assert go(study, pay).stopped == "budget"
    assert len(looks_of(tmp_path)) == 1


def test_failed_runs_do_not_hold_up_a_look(tmp_path):
    def fail(task):
        if task.problem.problem_id == "p3":
            raise ValueError("not today")

    go(make_study(tmp_path, stopping={"looks": 4, "futility": False}), Answer(before=fail))
    assert [number for number, *_ in looks_of(tmp_path)] == [1, 2, 3, 4]


def test_a_change_of_the_plan_after_a_look_voids_the_looks(tmp_path):
    go(make_study(tmp_path, effect=0.3), limit=10)
    assert len(looks_of(tmp_path)) == 1
    changed = make_study(tmp_path, effect=0.3, replicates=2)
    results = go(changed, resume=True)
    assert len(results) == 48
    assert len(looks_of(tmp_path)) == 1
    ((verdict, why, *_),) = verdicts(tmp_path)
    assert verdict == "exploratory"
    assert "after a planned look" in why
    assert "The plan was changed after a look" in report(tmp_path)


# -- killed and resumed --


def run_until_killed(study, agent=None):
    """Run a study in a child process that may die; returns whether it was killed."""
    pid = os.fork()
    if pid == 0:
        try:
            go(study, agent)
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def kill_at(count):
    """Return what kills this process at its nth call."""
    calls = []

    def call(*_):
        calls.append(None)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)

    return call


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    go(make_study(folder, effect=1.0, problems=10, stopping={"looks": 4, "spending": "pocock"}))
    return looks_of(folder), verdicts(folder)


@given(kills=st.lists(st.integers(1, 20), max_size=3))
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_study_killed_at_any_run_makes_the_same_looks(kills, undisturbed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed") / "alone"
    stopping = {"looks": 4, "spending": "pocock"}
    study = make_study(folder, effect=1.0, problems=10, stopping=stopping)
    for index, count in enumerate(kills):
        agent = Answer(1.0, before=kill_at(count))
        if index == 0:
            run_until_killed(study, agent)
        else:
            resume_until_killed(study, agent)
    go(study, resume=True)
    assert (looks_of(folder), verdicts(folder)) == undisturbed


def resume_until_killed(study, agent):
    pid = os.fork()
    if pid == 0:
        try:
            go(study, agent, resume=True)
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("look", [1, 2])
def test_a_study_killed_at_a_look_makes_it_once(tmp_path, monkeypatch, undisturbed, moment, look):
    stopping = {"looks": 4, "spending": "pocock"}
    study = make_study(tmp_path, effect=1.0, problems=10, stopping=stopping)
    store, kill = look_gate.store_look_log, kill_at(look)

    def store_or_die(ledger, log):
        if moment == "before":
            kill()
        store(ledger, log)
        if moment == "after":
            kill()

    with monkeypatch.context() as patch:
        patch.setattr(look_gate, "store_look_log", store_or_die)
        assert run_until_killed(study)
    assert len(looks_of(tmp_path)) == look - (moment == "before")
    go(study, resume=True)
    assert (looks_of(tmp_path), verdicts(tmp_path)) == undisturbed

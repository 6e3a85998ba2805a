"""Language models as judges: scores, several judges, costs, failures."""

import re
from collections import Counter

import pytest
from llm_kit import says, sends, serving
from run_kit import make_study, read_table

from fairtrial import StudyError, run_study
from fairtrial.study import full_report

PRICES = {"kit-1": [1.0, 10.0]}


def judge_study(folder, server, reference=None, budget=None, row=None, **options):
    given = {
        "base_url": server.base_url,
        "model": "kit-1",
        "rubric": "Is it right?",
        "prices": PRICES,
        "retries": 0,
        **options,
    }
    problem = {
        "brief": "2 + 2?",
        "reference": reference,
        "payload": row or {},
        "evaluator": {"use": "judge", "options": given},
    }
    return make_study(
        folder / "out", levels=(1,), replicates=1, problems={"p": problem}, budget=budget or {}
    )


def judged(folder, server, answer="four", output=None, **fields):
    study = judge_study(folder, server, **fields)
    agent = {"a": lambda task: output or {"answer": answer}}
    (result,) = run_study(study, agent_bindings=agent, retry_wait_s=0.0)
    return result


def scores(result):
    return [row["metric_value"] for row in result.evaluator_outputs]


def test_a_judge_scores_by_a_rubric_and_its_cost_counts(tmp_path):
    with serving(says("Fine.\n**Score:** 4")) as server:
        result = judged(tmp_path, server, reference="four {braces}")
    assert scores(result) == [4]
    (row,) = read_table(tmp_path / "out", "evaluations.csv")
    assert row["metric_name"] == "judge"
    assert "Fine." in row["notes_json"]
    prompt = server.seen[0].body["messages"][-1]["content"]
    for part in ("Is it right?", "2 + 2?", "four {braces}", "<answer>\nfour\n</answer>"):
        assert part in prompt
    # 1,000 tokens in and 200 out, at $1 and $10 for a million
    assert result.cost == pytest.approx(0.003)
    assert result.metrics["input_tokens"] == 1_000


def test_the_cost_of_a_judge_is_added_to_what_the_agent_reports(tmp_path):
    output = {"output": {"answer": "x"}, "metrics": {"cost_usd": 0.5, "input_tokens": 7}}
    with serving(says("Score: 1")) as server:
        result = judged(tmp_path, server, output=output)
    assert result.cost == pytest.approx(0.503)
    assert result.metrics["judge_cost_usd"] == pytest.approx(0.003)
    assert result.metrics["input_tokens"] == 1_007


def test_judges_stop_at_the_ceiling_of_the_study(tmp_path):
    with serving(otherwise=says("Score: 1")) as server:
        study = judge_study(tmp_path, server, budget={"max_cost_usd": 0.005})
        study = make_study(
            tmp_path / "out",
            levels=tuple(range(9)),
            replicates=1,
            problems=dict(study.problems),
            budget={"max_cost_usd": 0.005},
        )
        results = run_study(study, agent_bindings={"a": lambda task: {"answer": "x"}})
    assert results.stopped == "budget"
    assert len(server.seen) == 1  # a second answer would exceed it
    with serving() as server:
        study = judge_study(tmp_path / "2", server, budget={"max_cost_usd": 1}, prices={})
        with pytest.raises(StudyError, match="price of the model"):
            run_study(study, agent_bindings={"a": lambda task: {}})


def test_a_judge_without_a_score_is_asked_again(tmp_path):
    with serving(says("no idea"), says("Score: 99"), says("Score: 2.5")) as server:
        assert scores(judged(tmp_path, server)) == [2.5]


def test_a_judge_that_fails_breaks_the_run_and_does_not_fail_the_agent(tmp_path):
    for number, turn in enumerate((says("no idea"), sends(b"{}", 500), sends(b"{}", 400))):
        (tmp_path / str(number)).mkdir()
        with serving(otherwise=turn) as server:
            result = judged(tmp_path / str(number), server, budget={"retries": 0})
        assert str(result.status) == "broken", result.error_info


def test_paid_answers_of_a_judge_are_not_paid_twice(tmp_path):
    turns = [says("Score: 3"), sends(b"{}", 500), says("Score: 5")]
    judges = [{}, {"model": "kit-2"}]
    with serving(*turns) as server:
        result = judged(
            tmp_path,
            server,
            budget={"retries": 1},
            judges=judges,
            prices={"kit-1": [1.0, 10.0], "kit-2": [0, 0]},
        )
    assert scores(result) == [4]
    assert Counter(seen.body["model"] for seen in server.seen) == {"kit-1": 1, "kit-2": 2}


def prefers(answer):
    """A judge that finds one of the two answers better, wherever it stands."""

    def turn(handler, seen, server):
        prompt = seen.body["messages"][-1]["content"]
        first = re.search(r"<answer A>\n(.*?)\n</answer A>", prompt, re.DOTALL)[1]
        says(f"Winner: {'A' if first == answer else 'B'}")(handler, seen, server)

    return turn


@pytest.mark.parametrize(
    ("turn", "score"),
    [
        (prefers("four"), 1),
        (prefers("five"), 0),
        (says("Winner: A"), 0.5),
        (says("Winner: tie"), 0.5),
    ],
)
def test_answers_are_compared_in_both_orders(tmp_path, turn, score):
    with serving(otherwise=turn) as server:
        result = judged(tmp_path, server, reference="five", mode="pairwise")
    assert scores(result) == [score]
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rubric": ""}, "rubric: must not be empty"),
        ({"mode": "both"}, "expected 'rubric' or 'pairwise'"),
        ({"scale": [5, 1]}, "the lowest score comes first"),
        ({"judges": [{"modle": "x"}]}, "judges[0].modle: is no option of a model"),
        ({"judges": [{"model": ""}]}, "judges[0].model: must not be empty"),
        ({"key_variable": "NO_SUCH_KEY"}, "NO_SUCH_KEY"),
        ({"mode": "pairwise"}, "needs the right answer"),
    ],
)
def test_a_wrong_judge_is_refused_before_anything_runs(tmp_path, options, message):
    with serving() as server:
        study = judge_study(tmp_path, server, **options)
        with pytest.raises(StudyError) as caught:
            run_study(study, agent_bindings={"a": lambda task: {}})
    assert message in str(caught.value)


def test_the_report_says_how_well_judges_agree_with_people(tmp_path):
    def judge(handler, seen, server):
        answer = re.search(r"<answer>\n(\d)\n</answer>", seen.body["messages"][-1]["content"])[1]
        says(f"Score: {answer}")(handler, seen, server)

    labels = [1, 2, 3, 4, 5, 4]
    given = [1, 2, 3, 4, 5, 2]
    options = {"model": "kit-1", "rubric": "r", "label_column": "human", "retries": 0}
    with serving(otherwise=judge) as server:
        evaluator = {"use": "judge", "options": {**options, "base_url": server.base_url}}
        problems = {
            f"p{n}": {"payload": {"human": label, "given": own}, "evaluator": evaluator}
            for n, (label, own) in enumerate(zip(labels, given, strict=True))
        }
        study = make_study(
            tmp_path / "out", levels=(1,), replicates=1, problems=problems, problem_ids=()
        )
        agent = {"a": lambda task: {"answer": task.problem.payload["given"]}}
        results = run_study(study, agent_bindings=agent)
    report = full_report(study, results.conditions, results)
    (line,) = [line for line in report.splitlines() if line.startswith("| `judge`")]
    # By hand: 1.5278 / 1.8056, and 1 - 0.6667 / (1.8056 + 1.8056 + 0.1111).
    assert "6 of 6 problems" in line
    assert "| 0.846 [" in line
    assert "| 0.821 [" in line

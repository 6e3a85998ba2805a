"""The agent `http`: services on loopback that are asked by a template."""

import json

import pytest
import yaml
from llm_kit import KEY, KEY_VARIABLE, fails, hangs, sends, serving

from fairtrial import StudyError, load_study, run_study
from fairtrial.study.agents import read_transcript
from fairtrial.study.agents.answer_reading import find_value, read_answer, read_documents

ANSWER = {"choices": [{"text": "It is 4."}], "usage": {"in": 10, "out": 2}, "cost": 0.5}
METRICS = {"cost_usd": "cost", "input_tokens": "usage.in", "output_tokens": "usage.out"}


def write_study(folder, url, options=(), **fields):
    agent = {"url": url, "backoff_s": 0.0, "longest_wait_s": 0.0, **dict(options)}
    document = {
        "study_id": "s",
        "title": "A study of services",
        "factors": [{"name": "depth", "levels": [1, 2]}],
        "agents": {"service": {"use": "http", "options": agent}},
        "problems": {"sum": {"brief": "Add them.", "payload": {"question": "2 + 2?"}}},
        "run_budget": {"retries": 0},
        "output_dir": str(folder / "out"),
        **fields,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(document), "utf-8")
    return load_study(folder / "study.yaml")


def answers(document=ANSWER, status=200):
    return sends(json.dumps(document).encode(), status)


def test_a_template_is_sent_and_the_answer_read_by_its_path(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    options = {
        "body": {
            "q": "{brief} {question}",
            "depth": "{depth}",
            "nested": [{"as text": "d{depth}"}],
        },
        "answer_path": "choices[0].text",
        "answer": r"(\d+)",
        "metrics": METRICS,
        "headers": {"X-Team": "a"},
        "key_variable": KEY_VARIABLE,
        "key_header": "X-Api-Key",
        "key_prefix": "",
        "model": "kit",
    }
    with serving(otherwise=answers()) as server:
        results = run_study(write_study(tmp_path, f"{server.base_url}/ask?v=1", options))
    assert [result.outputs["answer"] for result in results] == ["4", "4"]
    assert sorted(seen.body["depth"] for seen in server.seen) == [1, 2]  # numbers stay numbers
    seen = min(server.seen, key=lambda seen: seen.body["depth"])
    assert (seen.body["q"], seen.body["nested"]) == ("Add them. 2 + 2?", [{"as text": "d1"}])
    assert (seen.path, seen.headers["x-api-key"], seen.headers["x-team"]) == (
        "/v1/ask?v=1",
        KEY,
        "a",
    )
    result = results[0]
    assert (result.metrics["cost_usd"], result.metrics["input_tokens"]) == (0.5, 10)
    kinds = [item.kind for item in read_transcript(result.observations)]
    assert kinds == ["message", "model_call", "message"]
    assert KEY not in json.dumps([dict(r.outputs) for r in results])


def test_a_busy_service_is_asked_again_and_a_refusal_is_the_agents_failure(tmp_path):
    busy = fails(429, "slow down", {"Retry-After": "7"})
    turns = [busy, fails(500), answers(), answers({"error": "no"}, 422)]
    with serving(*turns) as server:
        results = run_study(write_study(tmp_path, server.base_url, {"answer_path": "cost"}))
    done, refused = sorted(results, key=lambda result: str(result.status), reverse=True)
    assert done.outputs["answer"] == 0.5
    assert refused.failure_kind == "reported"
    assert "status 422" in refused.error_info
    assert refused.outputs["response"] == {"error": "no"}
    assert len(server.seen) == 4


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (fails(401, "who are you?"), "`key_variable` (not given)"),
        (fails(404, "nothing here"), "is `url` right?"),
        (fails(503, "down"), "2 attempts"),
        (sends(b"", 302, {"Location": "http://127.0.0.1:1/"}), "redirects"),
        (hangs(), "no complete answer within 0.2 s"),
    ],
)
def test_a_service_that_does_not_work_breaks_runs(tmp_path, turn, words):
    options = {"retries": 1, "timeout_s": 0.2 if "0.2" in words else 30}
    with serving(otherwise=turn) as server:
        results = run_study(write_study(tmp_path, server.base_url, options))
    assert {result.status for result in results} == {"broken"}
    assert all(words in result.error_info for result in results), results[0].error_info


def test_an_answer_that_is_not_there_fails_the_run(tmp_path):
    with serving(answers(), sends(b"<html>")) as server:
        results = run_study(write_study(tmp_path, server.base_url, {"answer_path": "text"}))
    assert {result.failure_kind for result in results} == {"reported"}
    said = {result.error_info.partition("answer: ")[2] for result in results}
    assert said == {"there is nothing at `text`", "there is no JSON in it"}


def test_an_answer_that_was_paid_for_is_not_asked_for_again(tmp_path, monkeypatch):
    (tmp_path / "checks.py").write_text(
        "import fairtrial, pathlib\n"
        "def flaky(output):\n"
        "    seen = pathlib.Path(__file__).with_name('seen')\n"
        "    if not seen.exists():\n"
        "        seen.touch()\n"
        "        raise fairtrial.Broken('later')\n"
        "    return {'ok': 1}\n"
    )
    monkeypatch.setattr("fairtrial.study.runner.assignment_feed.LONGEST_WAIT_S", 0.0)
    problem = {"brief": "b", "evaluator": "checks:flaky"}
    fields = {"problems": {"p": problem}, "run_budget": {"retries": 2}}
    with serving(otherwise=answers()) as server:
        results = run_study(write_study(tmp_path, server.base_url, {"metrics": METRICS}, **fields))
    assert {result.status for result in results} == {"success"}
    assert len(server.seen) == 2
    assert [result.metrics["cost_usd"] for result in results] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"body": {"q": "{qestion}"}}, "did you mean 'question'"),
        ({"headers": {"Authorization": "Bearer x"}}, "may hold a key"),
        ({"key_variable": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set"),
        ({"answer_path": "a..b"}, "no path into JSON"),
        ({"url": "ftp://x"}, "must be an http"),
        ({"retries": -1}, "must be 0 or more"),
    ],
)
def test_wrong_options_are_reported_before_anything_is_sent(tmp_path, options, words):
    with serving(otherwise=answers()) as server, pytest.raises(StudyError, match=words):
        run_study(write_study(tmp_path, server.base_url, options))
    assert not server.seen


def test_paths_lead_into_json_and_the_last_line_counts():
    documents = read_documents('noise\n{"a": {"b.c": [1, 2]}, "d": 1}\n{"d": 2}\n[3, 4]\n{broken')
    assert find_value(documents, 'a["b.c"][-1]') == 2
    assert find_value(documents, "d") == 2
    assert find_value(documents, "[0]") == 3
    with pytest.raises(ValueError, match=r"there is nothing at `a\.x`"):
        find_value(documents, "a.x")
    assert read_answer("x = 1, x = 22 ", [], "", r"x = (\d+)") == "22"
    assert read_answer(" all of it\n", [], "", "") == "all of it"

"""Agents that need no code: `use: chat`, and `task.llm` for those that have some."""

import json

import pytest
import yaml
from llm_kit import fails, says, serving

from fairtrial import StudyError, load_study, run_study
from fairtrial.study.agents import read_transcript
from fairtrial.study.runner import RunSettings, prepare

TOOLS = """
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

def judge(answer):
    return len(answer)
"""


def write_study(folder, base_url, options=(), **fields):
    agent = {"base_url": base_url, "model": "kit-1", "backoff_s": 0.0, **dict(options)}
    document = {
        "study_id": "s",
        "title": "A study of prompts",
        "factors": [{"name": "style", "levels": ["terse", "polite"]}],
        "agents": {"model": {"use": "chat", "options": agent}},
        "problems": {"sum": {"brief": "Add them.", "payload": {"question": "2 + 2?"}}},
        "run_budget": {"retries": 0},
        "output_dir": str(folder / "out"),
        **fields,
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return load_study(path)


PRICED = {"prices": {"kit-1": [1.0, 10.0]}}  # 1,000 and 200 tokens: $0.003


def test_a_prompt_is_filled_from_problem_and_factors_and_the_answer_is_the_output(tmp_path):
    options = {
        **PRICED,
        "system": "Be {style}.",
        "prompt": '{brief} {question} As {{x}} or {"json": 1}',
        "answer": r"ANSWER: (\d+)",
    }
    with serving(otherwise=says("I think. ANSWER: 3\nANSWER: 4")) as server:
        results = run_study(write_study(tmp_path, server.base_url, options))
    result = results[0]
    assert {seen.body["messages"][0]["content"] for seen in server.seen} == {
        "Be terse.",
        "Be polite.",
    }
    assert server.seen[0].body["messages"][1]["content"] == (
        'Add them. 2 + 2? As {x} or {"json": 1}'
    )
    assert result.outputs["answer"] == "4"
    assert result.metrics["cost_usd"] == pytest.approx(0.003)
    assert (result.metrics["input_tokens"], result.metrics["output_tokens"]) == (1_000, 200)
    records = read_transcript(result.observations)
    assert [(item.kind, item.role) for item in records] == [
        ("message", "system"),
        ("message", "user"),
        ("model_call", ""),
        ("message", "assistant"),
    ]
    assert records[2].facts["cost_usd"] == pytest.approx(0.003)


def test_a_placeholder_that_stands_for_nothing_is_reported_before_anything_is_asked(tmp_path):
    with serving(otherwise=says("four")) as server:
        study = write_study(tmp_path, server.base_url, {"prompt": "{qestion}"})
        with pytest.raises(StudyError, match="did you mean 'question'"):
            run_study(study)
    assert not server.seen


@pytest.mark.parametrize(
    ("changes", "executor"),
    [
        ({}, "async"),
        ({"options": {"tools": ["chat_tools:add"]}}, "processes"),
        ({"timeout_s": 60.0}, "processes"),
        ({"evaluator": "chat_tools:judge"}, "processes"),
        ({"evaluator": "exact", "reference": "4"}, "async"),
    ],
)
def test_runs_that_only_ask_a_model_share_one_process_and_its_rate_limits(
    tmp_path, changes, executor
):
    (tmp_path / "chat_tools.py").write_text(TOOLS, "utf-8")
    changes = dict(changes)
    options = changes.pop("options", {})
    budget = {"parallelism": 4, "timeout_s": changes.pop("timeout_s", None)}
    problems = {"sum": {"brief": "b", **changes}}
    study = write_study(
        tmp_path, "http://127.0.0.1:1/v1", options, run_budget=budget, problems=problems
    )
    assert prepare(study, RunSettings()).executor.name == executor


def test_names_of_factors_and_columns_may_have_spaces(tmp_path):
    problems = {"p": {"brief": "b", "payload": {"Größe": 3, "Full question": "2 + 2?"}}}
    factors = [{"name": "prompt style", "levels": ["terse"]}]
    prompt = "{Full question} {prompt style} {Größe} {{prompt style}} {of any kind} {x: y}"
    with serving(otherwise=says("4")) as server:
        run_study(
            write_study(
                tmp_path, server.base_url, {"prompt": prompt}, problems=problems, factors=factors
            )
        )
        wrong = {"prompt": "{prompt stile}"}
        study = write_study(tmp_path, server.base_url, wrong, problems=problems, factors=factors)
        with pytest.raises(StudyError, match="did you mean 'prompt style'"):
            run_study(study)
    (seen,) = server.seen
    sent = seen.body["messages"][-1]["content"]
    assert sent == "2 + 2? terse 3 {prompt style} {of any kind} {x: y}"


def test_tools_are_called_until_the_model_answers(tmp_path):
    (tmp_path / "chat_tools.py").write_text(TOOLS, "utf-8")
    function = {"name": "add", "arguments": '{"a": 2, "b": 2}'}
    wrong = {"name": "add", "arguments": '{"a": 2'}
    calls = [
        {"id": "c1", "type": "function", "function": function},
        {"id": "c2", "type": "function", "function": wrong},
    ]
    turns = [says("", finish="tool_calls", tool_calls=calls), says("4")] * 2
    with serving(*turns) as server:
        options = {"tools": ["chat_tools:add"], "prompt": "{question}"}
        result = run_study(write_study(tmp_path, server.base_url, options))[0]
    assert result.outputs["answer"] == "4"
    sent = server.seen[1].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool"]
    assert sent[2] == {"role": "tool", "tool_call_id": "c1", "content": "4"}
    assert "not JSON" in sent[3]["content"]
    schema = server.seen[0].body["tools"][0]["function"]["parameters"]
    assert schema["properties"] == {key: {"type": "integer"} for key in "ab"}
    kinds = [item.kind for item in read_transcript(result.observations)]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 2


def test_examples_from_a_file_come_before_the_prompt(tmp_path):
    rows = [{"input": "1 + 1?", "output": "2"}, {"input": "unused", "output": "unused"}]
    (tmp_path / "shots.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    with serving(otherwise=says("4")) as server:
        options = {"examples": "shots.jsonl", "most_examples": 1, "prompt": "{question}"}
        run_study(write_study(tmp_path, server.base_url, options))
    contents = [message["content"] for message in server.seen[0].body["messages"]]
    assert contents == ["1 + 1?", "2", "2 + 2?"]


def test_an_answer_that_must_follow_a_schema_is_the_output_itself(tmp_path):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with serving(says('{"n": 4}'), says("four")) as server:
        results = run_study(write_study(tmp_path, server.base_url, {"schema": schema}))
    by_status = {result.status.value: result for result in results}
    assert by_status["success"].outputs == {"n": 4}
    assert by_status["failed"].error_info == "the answer is not JSON"


def test_a_rejected_key_breaks_a_run_and_does_not_fail_it(tmp_path):
    with serving(otherwise=fails(401, "wrong key")) as server:
        study = write_study(tmp_path, server.base_url)
        with pytest.warns(UserWarning, match="stopped: .*401 wrong key.*the key comes from"):
            results = run_study(study)
    assert {result.status.value for result in results} == {"broken"}
    assert (results.stopped, len(server.seen)) == ("refused", 1)


def test_an_answer_is_not_paid_for_twice_when_a_run_is_attempted_again(tmp_path):
    with serving(says("one"), fails(500), says("two"), otherwise=says("x")) as server:

        async def agent(task):
            model = task.llm(server.base_url, "kit-1", prices=PRICED["prices"], retries=0)
            first = await model.ask("first?")
            return f"{first.text}, {(await model.ask('second?')).text}"

        study = write_study(
            tmp_path,
            server.base_url,
            agents={},
            agent_specs=["a"],
            factors=[{"name": "style", "levels": ["terse"]}],
            run_budget={"retries": 1},
        )
        result = run_study(study, agent_bindings={"a": agent})[0]
    assert [seen.body["messages"][0]["content"] for seen in server.seen] == [
        "first?", "second?", "second?",
    ]  # fmt: skip
    assert result.outputs == {"text": "one, two"}
    assert result.metrics["cost_usd"] == pytest.approx(0.006)


def test_recorded_answers_replay_offline_with_the_same_outputs(tmp_path):
    options = {"prompt": "{question}", "cache": "keep", "cache_dir": str(tmp_path / "answers")}
    with serving(says("4"), says("5")) as server:
        first = run_study(write_study(tmp_path, server.base_url, options))
    offline = {**options, "cache": "replay"}
    study = write_study(tmp_path, server.base_url, offline, output_dir=str(tmp_path / "again"))
    again = run_study(study)
    assert [result.outputs for result in again] == [result.outputs for result in first]
    assert sum(result.metrics["cost_usd"] for result in again) == 0


def test_an_agent_that_is_not_async_asks_as_well(tmp_path):
    with serving(otherwise=says("4")) as server:

        def agent(task):
            return task.llm(server.base_url, "kit-1").ask_sync("2 + 2?").text

        study = write_study(tmp_path, server.base_url, agents={}, agent_specs=["a"])
        results = run_study(study, agent_bindings={"a": agent}, executor="threads", parallelism=2)
    assert [result.outputs["text"] for result in results] == ["4", "4"]


def test_images_are_sent_with_the_prompt_and_their_data_is_in_no_event(tmp_path):
    (tmp_path / "cat.png").write_bytes(b"\x89PNG cat")
    problem = {"brief": "What is it?", "payload": {"pictures": ["cat.png", "https://x.org/a.png"]}}
    options = {"images": ["{pictures}"]}
    with serving(otherwise=says("a cat")) as server:
        study = write_study(tmp_path, server.base_url, options, problems={"p": problem})
        result = run_study(study)[0]
    text, *images = server.seen[0].body["messages"][-1]["content"]
    assert text == {"type": "text", "text": "What is it?"}
    urls = [part["image_url"]["url"] for part in images]
    assert urls == ["data:image/png;base64,iVBORyBjYXQ=", "https://x.org/a.png"]
    events = json.dumps(result.observations)
    assert "iVBORyBjYXQ=" not in events
    assert "data:image/png;sha256=" in events


@pytest.mark.parametrize(
    ("image", "words"),
    [("missing.png", "can't be read"), ("notes.txt", "is no image"), ("{nothing}", "placeholder")],
)
def test_an_image_that_is_not_there_is_reported_before_anything_is_asked(tmp_path, image, words):
    with serving(otherwise=says("a cat")) as server:
        study = write_study(tmp_path, server.base_url, {"images": [image]})
        with pytest.raises(StudyError, match=words):
            run_study(study)
    assert not server.seen

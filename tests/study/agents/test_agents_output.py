"""Reading what agents return: every form, without loss, or with a clear error."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from run_attempt_kit import run

from fairtrial.study import AgentOutput, RunOutput, agent_result
from fairtrial.study.agents.output import ReadOutput, read_output

Point = namedtuple("Point", "x y")


@dataclass
class Plan:
    answer: int
    why: str = "so"


class Dictable:
    def to_dict(self):
        return {"answer": 3}


@pytest.mark.parametrize(
    ("raw", "output"),
    [
        ({"answer": 42}, {"answer": 42}),  # known trap: was recorded as {}
        ({"text": "hello"}, {"text": "hello"}),
        ({}, {}),
        (None, {}),
        ("hello", {"text": "hello"}),
        (42, {"answer": 42}),
        (0.5, {"answer": 0.5}),
        (True, {"answer": True}),
        (np.float32(0.5), {"answer": 0.5}),
        ([1, 2], {"answer": [1, 2]}),
        ((1, 2), {"answer": (1, 2)}),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Plan(3), {"answer": 3, "why": "so"}),
        (Dictable(), {"answer": 3}),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ({"output": {"a": 1}}, {"a": 1}),
        ({"outputs": {"a": 1}}, {"a": 1}),
        ({"output": "hello"}, {"text": "hello"}),
        ({"output": None}, {}),
        ({"output": 3}, {"answer": 3}),
        (AgentOutput({"a": 1}), {"a": 1}),
        (AgentOutput("hello"), {"text": "hello"}),
        (AgentOutput(), {}),
        (RunOutput({"a": 1}), {"a": 1}),
    ],
)
def test_every_form_of_an_output_is_read(raw, output):
    assert read_output(raw) == ReadOutput(output)


def test_an_array_is_an_answer():
    read = read_output(np.array([[1, 2], [3, 4]]))
    assert read.output["answer"].tolist() == [[1, 2], [3, 4]]


PARTS = {
    "metrics": {"score": 1.5, "cost_usd": 0.2},
    "trace_refs": ["a.json"],
    "metadata": {"model_name": "m"},
}
EVENTS = [{"event_type": "tool_call", "text": "look", "tool_name": "grep"}]


@pytest.mark.parametrize(
    "raw",
    [
        {"output": {"a": 1}, **PARTS, "events": EVENTS},
        {"a": 1, **PARTS, "events": EVENTS},
        AgentOutput({"a": 1}, events=EVENTS, **PARTS),
        agent_result({"a": 1}, events=EVENTS, **PARTS),
    ],
)
def test_metrics_events_traces_and_metadata_are_distinguished_from_the_output(raw):
    read = read_output(raw)
    assert read.output == {"a": 1}
    assert {name: getattr(read, name) for name in PARTS} == PARTS
    (event,) = read.events
    assert (event["event_type"], event["text"], event["tool_name"]) == ("tool_call", "look", "grep")
    assert read.success


def test_agent_result_gives_a_plain_mapping_with_five_keys():
    assert agent_result("hello") == {
        "output": {"text": "hello"},
        "metrics": {},
        "events": [],
        "metadata": {},
        "trace_refs": [],
    }
    made = agent_result(
        {"a": 1}, metrics={"m": 2}, events=[{"text": "x"}], metadata={"k": 3}, trace_refs=["t"]
    )
    assert made == {
        "output": {"a": 1},
        "metrics": {"m": 2},
        "events": [{"text": "x"}],
        "metadata": {"k": 3},
        "trace_refs": ["t"],
    }
    assert agent_result()["output"] == {}


@pytest.mark.parametrize(
    ("raw", "output", "error"),
    [
        ({"output": {"a": 1}, "success": False}, {"a": 1}, None),
        ({"output": {"a": 1}, "success": False, "error": "gave up"}, {"a": 1}, "gave up"),
        ({"success": False, "error": "gave up"}, {"success": False, "error": "gave up"}, "gave up"),
        ({"moves": 3, "success": np.False_}, {"moves": 3, "success": np.False_}, None),
        (AgentOutput({"a": 1}, success=False, error="gave up"), {"a": 1}, "gave up"),
        (SimpleNamespace(success=False, output={"a": 1}, metadata={}), {"a": 1}, None),
        (
            SimpleNamespace(success=False, output={"a": 1}, metadata={}, error="gave up"),
            {"a": 1},
            "gave up",
        ),
    ],
)
def test_a_result_that_says_success_false_is_not_a_success(raw, output, error):
    read = read_output(raw)
    assert (read.success, read.output, read.error) == (False, output, error)
    ran = run(lambda task: raw)
    assert ran.outcome.status == "failed"
    assert ran.outcome.failure_kind == "reported"
    assert ran.body["outputs"] == output
    assert ran.body["error_info"] == (error or "the agent says that it failed, not why")


@pytest.mark.parametrize("value", [True, None, 0, 0.0, 1])
def test_only_false_itself_says_that_the_agent_failed(value):
    assert read_output({"success": value, "answer": 1}).success


def test_the_result_of_an_agent_framework_is_read():
    raw = SimpleNamespace(
        success=True,
        output={
            "final_output": {"answer": 4},
            "metrics": {"loops": 2, "input_tokens": 5},
            "events": [{"text": "x"}],
        },
        metadata={"agent_kind": "react", "trace_path": "t.json", "trace_refs": ["t.json", "u"]},
        model_response=SimpleNamespace(
            model="big", provider="lab", usage={"prompt_tokens": 7, "completion_tokens": 3}
        ),
    )
    read = read_output(raw)
    assert read.output == {"answer": 4}
    assert read.metrics == {"loops": 2, "input_tokens": 5, "output_tokens": 3}
    assert [event["text"] for event in read.events] == ["x"]
    assert read.trace_refs == ["t.json", "u"]
    assert read.metadata["model_name"] == "big"
    assert read.metadata["model_provider"] == "lab"
    assert read.metadata["agent_kind"] == "react"


@pytest.mark.parametrize(
    ("held", "output"),
    [
        ({"final_output": "done"}, {"text": "done"}),
        ({"final_output": 3}, {"final_output": 3}),
        ({"text": "done"}, {"text": "done"}),
        ({"model_text": "done"}, {"text": "done"}),
        ({"a": 1, "metrics": {}}, {"a": 1}),
        ("done", {"text": "done"}),
    ],
)
def test_a_framework_may_keep_its_output_under_several_names(held, output):
    raw = SimpleNamespace(success=True, output=held, metadata={})
    assert read_output(raw).output == output


def test_usage_may_be_an_object():
    response = SimpleNamespace(usage=SimpleNamespace(total_tokens=12))
    raw = SimpleNamespace(success=True, output={}, metadata={}, model_response=response)
    assert read_output(raw).metrics == {"total_tokens": 12}


def letters():
    yield "a"


async def letters_later():
    yield "a"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (letters(), "type generator"),
        (letters_later(), "type async_generator"),
        (object(), "type object"),
        (b"bytes", "type bytes"),
        ({1, 2}, "type set"),
        (lambda: 0, "type function"),
        ({"output": {}, "note": "x", "score": 1}, "beside it, note, score"),
        ({"output": {}, "outputs": {}}, "beside it, outputs"),
        ({"output": object()}, "type object"),
        ({"metrics": [1]}, "metrics must be a mapping, not list"),
        ({"metrics": {1: 2}}, "metrics must have texts as keys, not 1"),
        ({"metadata": "v2"}, "metadata must be a mapping, not str"),
        ({"events": "x"}, "events must be a list of mappings, not str"),
        ({"events": {"a": 1}}, "events must be a list of mappings, not dict"),
        ({"events": [{}, 3]}, "events[1] must be a mapping, not int"),
        ({"events": [{"meta_json": "x"}]}, "events[0].meta_json must be a mapping, not str"),
        ({"events": [{"level": "galaxy"}]}, "level is one of study, run,"),
        ({"events": [{"timestamp": 12}]}, "timestamp is text or a datetime, not int"),
        ({"trace_refs": "a.json"}, "trace_refs must be a list of texts, not str"),
        ({"metrics": {"cost_usd": "1 USD"}}, "metrics.cost_usd must be a number of 0 or more"),
        ({"metrics": {"cost_usd": float("nan")}}, "metrics.cost_usd must be a number of 0 or more"),
        ({"metrics": {"input_tokens": -1}}, "metrics.input_tokens must be a number of 0 or more"),
        ({"metrics": {"output_tokens": 1e300}}, "metrics.output_tokens must be a number"),
    ],
)
def test_what_cannot_be_read_fails_the_run_and_is_never_dropped(raw, says):
    with pytest.raises((TypeError, ValueError)) as caught:
        read_output(raw)
    assert says in str(caught.value)
    ran = run(lambda task: raw)
    assert ran.outcome.status == "failed"
    assert says in ran.body["error_info"]
    assert ran.body["traceback"] is None  # it would show our code, not the agent's


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), Decimal("0.5")])
def test_costs_in_the_numbers_of_other_libraries_are_plain(value):
    read = read_output({"metrics": {"cost_usd": value}})
    assert read.metrics == {"cost_usd": 0.5}
    assert type(read.metrics["cost_usd"]) is float


def test_an_agents_own_mapping_is_not_changed():
    metrics = {"cost_usd": np.float32(0.5)}
    read_output({"metrics": metrics})
    assert type(metrics["cost_usd"]) is np.float32


words = st.text(max_size=5)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(words, plain, max_size=5))
def test_any_plain_output_comes_back_unchanged(output):
    ran = run(lambda task: {"output": output}, {})
    assert ran.outcome.status == "success"
    assert ran.body["outputs"] == output


def test_nan_and_infinity_are_kept():
    ran = run(lambda task: {"answer": [float("nan"), float("inf")]}, {})
    assert repr(ran.body["outputs"]["answer"]) == "[nan, inf]"


def test_arrays_and_numpy_numbers_are_written_as_plain_ones():
    ran = run(lambda task: {"a": np.arange(3), "b": np.int8(4), "c": np.bool_(True)}, {})
    assert ran.body["outputs"] == {"a": [0, 1, 2], "b": 4, "c": True}

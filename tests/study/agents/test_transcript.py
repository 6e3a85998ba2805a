"""Transcripts: typed events that agents record, and reading them back from results."""

import pytest
from hypothesis import given, strategies as st
from run_kit import make_study, run

from fairtrial.study import agents

CALL = {"id": "c1", "name": "add", "arguments": '{"x": 1}'}


def talk(task):
    task.record(agents.message_event("system", "Be brief."))
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {}}]
    task.record(agents.message_event("user", parts))
    task.record(agents.model_call_event("m", endpoint="h", input_tokens=3, cost_usd=0.5))
    task.record(agents.message_event("assistant", None, tool_calls=[CALL], model="m"))
    task.record(agents.tool_call_event("add", {"x": 1}, "c1"))
    task.emit("note", "beside the transcript")
    task.record(agents.tool_result_event("add", "2", "c1", is_error=True))
    return {"x": 1}


def test_a_transcript_is_read_back_from_the_ledger_in_order(tmp_path):
    (result,) = run(make_study(tmp_path / "out", (1,), 1), talk)
    records = agents.read_transcript(result.observations)
    assert [record.kind for record in records] == [
        "message", "message", "model_call", "message", "tool_call", "tool_result",
    ]  # fmt: skip
    assert [record.role for record in records[:4]] == ["system", "user", "", "assistant"]
    assert records[1].text == "What is this?\n[image_url]"
    assert records[1].facts["content"][1]["type"] == "image_url"
    assert records[2].facts["cost_usd"] == 0.5
    assert records[3].facts["tool_calls"] == [CALL]
    assert (records[4].tool_name, records[4].text) == ("add", '{"x": 1}')
    assert records[5].facts == {"call_id": "c1", "is_error": True}
    assert result.metrics["tool_call_count"] == 1


def test_a_message_of_an_unknown_role_is_refused():
    with pytest.raises(ValueError, match="system, user, assistant, tool"):
        agents.message_event("developer", "x")


@given(st.sampled_from(["system", "user", "assistant", "tool"]), st.text())
def test_a_message_is_read_as_it_was_made(role, text):
    (record,) = agents.read_transcript([agents.message_event(role, text)])
    assert (record.kind, record.role, record.text) == ("message", role, text)

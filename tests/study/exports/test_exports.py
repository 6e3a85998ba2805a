"""Runs in the formats of other tools, read back by the libraries of these tools."""

import json
from pathlib import Path

import pytest

from fairtrial import Factor, OutcomeSpec, RunBudget, Study, run_study
from fairtrial.study import agents

QUESTION = "2 + 2? “Quoted”, 四"


def talk(task):
    """Calls a tool, then answers; fails at style `rude`. Model figures as a client gives them."""
    call = {"id": "c1", "name": "add", "arguments": '{"a": 2, "b": 2}'}
    task.record(agents.message_event("system", "Add."))
    task.record(agents.message_event("user", QUESTION))
    figures = {"endpoint": "api.example", "seconds": 0.0001, "finish_reason": "tool_calls"}
    tokens = {"input_tokens": 10, "output_tokens": 3, "cost_usd": 0.5}
    task.record(agents.model_call_event("kit-1", **figures, **tokens))
    task.record(agents.message_event("assistant", "", tool_calls=[call], model="kit-1"))
    task.record(agents.tool_call_event("add", call["arguments"], "c1"))
    task.record(agents.tool_result_event("add", "4", "c1"))
    task.record(agents.message_event("tool", "4", tool_call_id="c1"))
    if task.factors["style"] == "rude":
        raise ValueError("no manners")
    task.record(agents.model_call_event("kit-1", input_tokens=20, output_tokens=1))
    task.record(agents.message_event("assistant", "It is 4.", model="kit-1"))
    return {
        "output": {"answer": "4", "parts": [1, {"x": None}]},
        "metrics": {"score": 1.0, "cost_usd": 0.5, "curve": [1, 2], "fine": True},
        "metadata": {"model_name": "kit-1"},
    }


@pytest.fixture
def results(tmp_path):
    study = Study(
        "talks",
        "Talks",
        factors=(Factor("style", levels=("terse", "rude")),),
        outcomes=(OutcomeSpec("score"),),
        run_budget=RunBudget(replicates=2),
        output_dir=tmp_path / "out",
    )
    return run_study(study, agent_bindings={"default-agent": talk}, show_progress=False)


def spans_of(line):
    (resource,) = json.loads(line)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    return scope["spans"]


def facts(span):
    return {item["key"]: next(iter(item["value"].values())) for item in span["attributes"]}


def test_spans_are_a_trace_for_each_run(run, results, tmp_path):
    code, out, _ = run("export", results.folder, "--otel", tmp_path / "spans.jsonl")
    assert code == 0
    assert "wrote the spans of 4 runs" in out
    lines = (tmp_path / "spans.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 4
    spans = next(each for each in map(spans_of, lines) if each[0]["status"]["code"] == 1)
    assert [span["name"] for span in spans] == [
        "invoke_agent default-agent",
        "chat kit-1",
        "execute_tool add",
        "chat kit-1",
    ]
    root, chat, tool, last = spans
    assert len({span["spanId"] for span in spans}) == 4
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    assert {span.get("parentSpanId") for span in spans} == {None, root["spanId"]}
    assert all(len(span["spanId"]) == 16 and len(span["traceId"]) == 32 for span in spans)
    for span in spans:
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    assert facts(root)["fairtrial.factor.style"] == "terse"
    assert facts(root)["fairtrial.score.score"] == 1.0
    assert facts(chat)["gen_ai.usage.input_tokens"] == "10"
    asked = json.loads(facts(chat)["gen_ai.input.messages"])
    assert asked[1] == {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}
    (answer,) = json.loads(facts(chat)["gen_ai.output.messages"])
    assert answer["parts"][0]["name"] == "add"
    assert answer["finish_reason"] == "tool_calls"
    assert facts(tool)["gen_ai.tool.call.result"] == "4"
    roles = [item["role"] for item in json.loads(facts(last)["gen_ai.input.messages"])]
    assert roles == ["system", "user", "assistant", "tool"]
    failed = next(each[0] for each in map(spans_of, lines) if each[0]["status"]["code"] == 2)
    assert failed["status"]["message"] == "ValueError: no manners"
    assert facts(failed)["error.type"] == "exception"
    before = (tmp_path / "spans.jsonl").read_bytes()
    assert run("export", results.folder, "--otel", tmp_path / "spans.jsonl")[0] == 0
    assert (tmp_path / "spans.jsonl").read_bytes() == before


def test_spans_are_read_by_the_library_of_opentelemetry(run, results, tmp_path):
    proto = pytest.importorskip(
        "opentelemetry.proto.trace.v1.trace_pb2", reason="needs opentelemetry-proto"
    )
    from google.protobuf import json_format

    run("export", results.folder, "--otel", tmp_path / "spans.jsonl")
    for line in (tmp_path / "spans.jsonl").read_text("utf-8").splitlines():
        document = json.loads(line)
        # protobuf's own JSON has ids in base64; OTLP's has them in hexadecimal digits.
        for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64_of(span[name])
        data = json_format.ParseDict(document, proto.TracesData())
        spans = data.resource_spans[0].scope_spans[0].spans
        assert len(spans[0].trace_id) == 16
        assert len(spans[0].span_id) == 8
        assert spans[1].kind == proto.Span.SPAN_KIND_CLIENT
        values = {item.key: item.value for item in spans[1].attributes}
        assert values["gen_ai.usage.output_tokens"].int_value == 3


def base64_of(digits):
    import base64

    return base64.b64encode(bytes.fromhex(digits)).decode()


def test_logs_of_inspect_have_a_file_for_each_condition(run, results, tmp_path):
    code, out, _ = run("export", results.folder, "--inspect", tmp_path / "logs")
    assert code == 0
    assert "wrote 2 logs" in out
    logs = [json.loads(path.read_text("utf-8")) for path in (tmp_path / "logs").iterdir()]
    styles = {log["eval"]["task_args"]["style"]: log for log in logs}
    assert [sample["epoch"] for sample in styles["terse"]["samples"]] == [1, 2]
    assert styles["rude"]["results"]["completed_samples"] == 0
    assert "no manners" in styles["rude"]["samples"][0]["error"]["message"]


def test_logs_are_read_by_inspect(run, results, tmp_path):
    log_module = pytest.importorskip("inspect_ai.log", reason="needs inspect_ai (extra: inspect)")
    run("export", results.folder, "--inspect", tmp_path / "logs")
    logs = [log_module.read_eval_log(str(path)) for path in sorted((tmp_path / "logs").iterdir())]
    log = next(each for each in logs if each.eval.task_args == {"style": "terse"})
    assert (log.status, log.eval.task, log.eval.model) == ("success", "talks", "kit-1")
    assert [sample.epoch for sample in log.samples] == [1, 2]
    sample = log.samples[0]
    assert [message.role for message in sample.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert sample.messages[2].tool_calls[0].arguments == {"a": 2, "b": 2}
    assert sample.input == QUESTION
    assert sample.output.completion == "It is 4."
    assert sample.scores["score"].value == 1.0
    assert sample.model_usage["kit-1"].input_tokens == 30
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(1.0)
    rude = next(each for each in logs if each is not log)
    assert rude.samples[0].error.message == "ValueError: no manners"
    found = log_module.list_eval_logs(str(tmp_path / "logs"))
    assert len(found) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_runs_are_read_back_from_mlflow_and_never_added_twice(run, results, tmp_path):
    tracking = pytest.importorskip("mlflow.tracking", reason="needs mlflow (extra: mlflow)")
    code, out, err = run("export", results.folder, "--mlflow", tmp_path / "flow")
    assert code == 0, err
    assert "added 4 runs" in out
    assert "added 0 runs" in run("export", results.folder, "--mlflow", tmp_path / "flow")[1]
    client = tracking.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'flow/mlflow.db'}")
    experiment = client.get_experiment_by_name("talks")
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(each.info.status for each in runs) == ["FAILED", "FAILED", "FINISHED", "FINISHED"]
    good = next(each for each in runs if each.info.status == "FINISHED")
    assert good.data.params["factor_style"] == "terse"
    assert good.data.metrics["score"] == 1.0
    assert good.data.tags["fairtrial.run_id"] in {each.run_id for each in results}
    place = client.download_artifacts(good.info.run_id, "outputs.json", str(tmp_path))
    assert json.loads(Path(place).read_text())["answer"] == "4"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--otel", "."], "is a folder"),
        (["--inspect", "file"], "is a file"),
        (["--otel", "file/x.jsonl"], "can't be written"),
    ],
)
def test_a_wrong_target_is_reported(run, results, tmp_path, arguments, words):
    (tmp_path / "file").touch()
    code, _, err = run("export", results.folder, *arguments)
    assert code in (2, 4)
    assert words in err


def test_without_mlflow_the_extra_is_named(run, results, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow.tracking", None)
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    code, _, err = run("export", results.folder, "--mlflow", "flow")
    assert code == 4
    assert "fairtrial[mlflow]" in err

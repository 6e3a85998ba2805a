"""The first study of a newcomer: from a CSV file, without Python."""

import json
import re

import yaml
from llm_kit import fails, says, serving

CSV = "No,Question,Answer,Topic\n" + "".join(
    f"{n},What is {n} + {n}?,{2 * n},{'ab'[n % 2]}\n" for n in range(1, 9)
)


def answers(handler, seen, server):
    """A model that only gets it right when it thinks step by step."""
    prompt = seen.body["messages"][-1]["content"]
    number = int(re.search(r"What is (\d+)", prompt)[1])
    says(f"Answer: {2 * number}" if "step by step" in prompt else "17")(handler, seen, server)


def test_a_csv_file_becomes_a_study_that_runs_and_is_reported(run, tmp_path):
    (tmp_path / "tasks.csv").write_text(CSV)
    code, out, _ = run("init", "--from", "tasks.csv")
    assert code == 0
    for guess in (
        "id: no column found; named by their content",
        "brief: {Question} (what agents are asked)",
        "reference: Answer",
        "family: Topic",
        "evaluator: numeric",
        "parallelism: 8 runs at once",
    ):
        assert guess in out
    assert run("check", "study.yaml")[0] == 0
    with serving(otherwise=answers) as server:
        text = (tmp_path / "study.yaml").read_text("utf-8")
        text = text.replace("http://127.0.0.1:11434/v1", server.base_url)
        (tmp_path / "study.yaml").write_text(text)
        code, out, err = run("run", "study.yaml")
        assert (code, "16 of 16 runs done: 16 success" in out) == (0, True), err
    code, out, _ = run("report", "artifacts/study")
    assert "**supported**" in out
    assert "n = 8 problems" in out


def test_drafted_studies_ask_the_model_several_times_at_once(run, tmp_path):
    (tmp_path / "tasks.csv").write_text(CSV)
    run("init", "--from", "tasks.csv")
    code, out, _ = run("run", "study.yaml", "--dry-run")
    assert code == 0
    assert "(async, 8 at once)" in out


def test_a_wrong_address_is_mended_in_the_study_file_and_run_again(run, tmp_path):
    (tmp_path / "tasks.csv").write_text(CSV)
    run("init", "--from", "tasks.csv")
    study = tmp_path / "study.yaml"
    draft = study.read_text("utf-8")
    with serving(otherwise=fails(404)) as server:
        study.write_text(draft.replace("http://127.0.0.1:11434/v1", server.base_url))
        code, out, err = run("run", "study.yaml", "--no-progress")
    assert (code, " broken" in out) == (8, True), err
    assert "mend it, then:   fairtrial resume study.yaml" in err
    assert "fairtrial retry" not in out + err
    with serving(otherwise=answers) as server:
        study.write_text(draft.replace("http://127.0.0.1:11434/v1", server.base_url))
        code, out, err = run("resume", "study.yaml", "--no-progress")
        assert (code, "16 of 16 runs done: 16 success" in out) == (0, True), err
        assert "no run has a result yet, all broke: they are run again, with agents." in err
        # From now on there are results, and another model is another study.
        study.write_text(study.read_text("utf-8").replace("my-model", "another"))
        code, _, err = run("run", "study.yaml", "--no-progress")
        assert (code, "holds results of a different study" in err) == (3, True)


def test_outputs_without_any_answer_are_noticed_at_once(run, tmp_path):
    (tmp_path / "tasks.csv").write_text(CSV)
    run("init", "--from", "tasks.csv")
    study = yaml.safe_load((tmp_path / "study.yaml").read_text("utf-8"))
    study["agents"]["assistant"] = "silent_agents:agent"
    (tmp_path / "silent_agents.py").write_text("def agent(task):\n    return {'found': 1}\n")
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    code, _, err = run("run", "study.yaml", "--no-progress")
    assert code == 0
    assert "'numeric' found no answer in any output, so that all score 0" in err
    assert "(the outputs have: found)" in err
    study["problems"]["evaluator"]["options"]["field"] = "found"
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    code, _, err = run("run", "study.yaml", "--no-progress", "--output", "other")
    assert (code, "found no answer" in err) == (0, False)


def test_guesses_fit_what_columns_hold(run, tmp_path):
    (tmp_path / "steps.jsonl").write_text(
        json.dumps({"question": "q", "answer": "1 + 1 = 2\n#### 2", "task_id": 1}) + "\n"
    )
    (tmp_path / "code.json").write_text(json.dumps([{"prompt": "p", "test": "assert 1", "id": 1}]))
    (tmp_path / "words.csv").write_text("text,label\nlong text here,Paris\n")
    found = {}
    for name in ("steps.jsonl", "code.json", "words.csv"):
        code, out, _ = run("init", f"{name}.yaml", "--from", name, "--json")
        assert code == 0, out
        found[name] = yaml.safe_load((tmp_path / f"{name}.yaml").read_text("utf-8"))["problems"]
    assert found["steps.jsonl"]["id"] == "task_id"
    assert found["steps.jsonl"]["evaluator"]["options"] == {"extract_reference": "#### (.+)"}
    assert found["code.json"]["evaluator"]["options"] == {"tests_column": "test"}
    assert found["words.csv"]["brief"] == "{text}"
    assert found["words.csv"]["evaluator"]["use"] == "exact"


def test_a_draft_needs_a_dataset_and_replaces_nothing(run, tmp_path):
    code, _, err = run("init", "--from", "tasks.csv")
    assert code == 2
    assert "there is no file" in err
    assert not (tmp_path / "study.yaml").exists()
    (tmp_path / "tasks.csv").write_text(CSV)
    (tmp_path / "study.yaml").write_text("mine")
    code, _, err = run("init", "--from", "tasks.csv")
    assert code == 2
    assert "--force" in err
    code, _, err = run("init", "x.yaml", "--from", "tasks.csv", "--recipe", "prompt-framing")
    assert code == 2
    assert "different ways to start" in err


def test_check_reports_duplicate_rows(run, tmp_path):
    (tmp_path / "tasks.csv").write_text(CSV + CSV.splitlines()[1] + "\n")
    (tmp_path / "study.yaml").write_text("study_id: s\ntitle: t\nproblems: tasks.csv\n")
    code, _, err = run("check", "study.yaml")
    assert code == 0
    assert "study.yaml:3: problems: 1 row is a copy of another" in err

"""The agent `command`: real programs in real sandboxes, on the tasks of a study."""

import json
import os
import sys

import pytest
import yaml

from fairtrial import StudyError, load_study, run_study
from fairtrial.study.agents import read_transcript

# Prints what it was given, as coding agents print their results: JSON, the last line of several.
PROGRAM = """
import json, os, pathlib, sys
prompt = sys.stdin.read()
skill = pathlib.Path("skills/plan.md")
pathlib.Path("notes").mkdir(exist_ok=True)
pathlib.Path("notes/answer.md").write_text(prompt.upper())
pathlib.Path("notes/raw.bin").write_bytes(b"\\0\\1")
pathlib.Path("other.log").write_text("noise")
print("thinking ...")
print(json.dumps({"type": "step", "result": "not yet"}))
print(json.dumps({
    "type": "result",
    "result": f"ANSWER: {len(prompt)}",
    "skill": skill.read_text() if skill.exists() else None,
    "args": sys.argv[1:],
    "effort": os.environ.get("EFFORT"),
    "key": os.environ.get("AGENT_TEST_KEY"),
    "usage": {"input_tokens": 120, "output_tokens": 30},
    "total_cost_usd": 0.25,
    "num_turns": 3,
}))
"""
METRICS = {
    "cost_usd": "total_cost_usd",
    "input_tokens": "usage.input_tokens",
    "output_tokens": "usage.output_tokens",
    "turns": "num_turns",
    "absent": "no.such.place",
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "agent.py").write_text(PROGRAM)
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/good.md").write_text("Plan first.")
    return tmp_path


def write_study(folder, options=(), factors=(), **fields):
    agent = {
        "argv": ["{python}", "agent.py"],
        "files": {"agent.py": "agent.py"},
        "timeout_s": 60,
        "sandbox": "plain",
        **dict(options),
    }
    document = {
        "study_id": "s",
        "title": "A study of programs",
        "factors": list(factors) or [{"name": "unused", "levels": [1]}],
        "agents": {"cli": {"use": "command", "options": agent}},
        "problems": {"sum": {"brief": "Add them.", "payload": {"question": "2 + 2?"}}},
        "run_budget": {"retries": 0},
        "output_dir": str(folder / "out"),
        **fields,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(document), "utf-8")
    return load_study(folder / "study.yaml")


def last_line(result):
    return json.loads(result.outputs["stdout"].splitlines()[-1])


def test_answer_files_figures_and_transcript_of_a_program_are_read(folder):
    options = {
        "prompt": "{brief} {question}",
        "answer_path": "result",
        "answer": r"ANSWER: (\d+)",
        "metrics": METRICS,
        "collect": ["notes/**"],
        "model": "kit-1",
        "sandbox": "auto",
    }
    (result,) = run_study(write_study(folder, options))
    assert result.error_info is None, result.outputs
    assert result.outputs["answer"] == str(len("Add them. 2 + 2?"))
    assert result.outputs["exit_code"] == 0
    files = result.outputs["files"]
    assert files["notes/answer.md"] == "ADD THEM. 2 + 2?"
    assert files["notes/raw.bin"]["bytes"] == 2
    assert "other.log" not in files
    assert (result.metrics["input_tokens"], result.metrics["output_tokens"]) == (120, 30)
    assert (result.metrics["cost_usd"], result.metrics["turns"]) == (0.25, 3)
    assert "absent" not in result.metrics
    records = read_transcript(result.observations)
    assert [item.kind for item in records] == ["message", "model_call", "message"]
    assert records[0].text == "Add them. 2 + 2?"
    assert records[1].facts["cost_usd"] == 0.25


def test_factors_set_flags_variables_and_skills(folder):
    factors = [
        {"name": "flags", "levels": [{"name": "none", "value": None},
                                     {"name": "deep", "value": ["--deep", "7"]}]},
        {"name": "skill", "levels": [{"name": "no", "value": ""}, "skills/good.md"]},
    ]  # fmt: skip
    options = {
        "argv": ["{python}", "agent.py", "{flags}", "--to={skill}"],
        "env": {"EFFORT": "e-{skill}"},
        "files": {"agent.py": "agent.py", "skills/plan.md": "{skill}"},
    }
    results = run_study(write_study(folder, options, factors))
    seen = {(tuple(last_line(r)["args"]), last_line(r)["skill"], last_line(r)["effort"])
            for r in results}  # fmt: skip
    assert seen == {
        (("--to=",), None, "e-"),
        (("--deep", "7", "--to="), None, "e-"),
        (("--to=skills/good.md",), "Plan first.", "e-skills/good.md"),
        (("--deep", "7", "--to=skills/good.md"), "Plan first.", "e-skills/good.md"),
    }


def test_an_evaluator_gets_the_answer_or_else_all_files(folder):
    (folder / "judges.py").write_text(
        "def answer(got): return {'ok': got == 'ANSWER: 9'}\n"
        "def files(got): return {'ok': got['files']['notes/answer.md'] == 'ADD THEM.'}\n"
    )
    for judge, options in (
        ("answer", {"answer_path": "result", "collect": ["notes/*"]}),
        ("files", {"collect": ["notes/*.md"]}),
    ):
        problem = {"brief": "Add them.", "evaluator": f"judges:{judge}"}
        study = write_study(
            folder, options, problems={"p": problem}, output_dir=str(folder / judge)
        )
        (result,) = run_study(study)
        assert [row["metric_value"] for row in result.evaluator_outputs] == [1], result.error_info


@pytest.mark.parametrize("way", ["argument", "file"])
def test_a_prompt_arrives_as_an_argument_or_in_a_file(folder, way):
    shows = "import sys, pathlib; word = sys.argv[1]; print(word if {} else open(word).read())"
    code = shows.format(way == "argument")
    options = {"argv": ["{python}", "-c", code, "{prompt}"], "prompt_by": way}
    (result,) = run_study(write_study(folder, {**options, "prompt": "It's {question}"}))
    assert result.outputs["answer"] == "It's 2 + 2?"


def test_a_key_reaches_the_program_and_no_record(folder, monkeypatch):
    monkeypatch.setenv("AGENT_TEST_KEY", "sk-a-long-secret-key")
    study = write_study(folder, {"variables": ["AGENT_TEST_KEY"], "collect": ["*.py"]})
    (result,) = run_study(study)
    assert "sk-a-long" not in json.dumps(dict(result.outputs))
    assert last_line(result)["key"] == "[key removed]"
    monkeypatch.delenv("AGENT_TEST_KEY")
    with pytest.raises(StudyError, match="AGENT_TEST_KEY is not set"):
        run_study(write_study(folder, {"variables": ["AGENT_TEST_KEY"]}, output_dir="other"))


@pytest.mark.parametrize(
    ("code", "options", "expected"),
    [
        ("import sys; print('no'); sys.exit(3)", {}, "ended with status 3"),
        ("import sys; print('no'); sys.exit(3)", {"exit_codes": [3]}, None),
        ("print('text')", {"answer_path": "result"}, "there is no JSON in it"),
        ("print('{\"a\": 1}')", {"answer_path": "b[0]"}, "there is nothing at `b[0]`"),
        ("print('text')", {"answer": "y+"}, "no match for `answer` (y+)"),
        ("import time; time.sleep(60)", {"timeout_s": 0.2}, "took longer than 0.2 s"),
    ],
)
def test_a_failure_says_what_went_wrong_and_keeps_what_was_printed(folder, code, options, expected):
    study = write_study(folder, {"argv": ["{python}", "-c", code], **options})
    (result,) = run_study(study)
    assert (result.error_info is None) if expected is None else (expected in result.error_info)
    assert result.failure_kind == (None if expected is None else "reported")
    assert "stdout" in result.outputs


@pytest.mark.skipif(os.geteuid() != 0 and sys.platform != "linux", reason="needs a full sandbox")
def test_in_the_sandbox_a_program_sees_its_own_files_only(folder):
    (folder / "answers.json").write_text('{"sum": 4}')
    code = f"import os; print(os.path.exists({str(folder / 'answers.json')!r}), os.listdir())"
    options = {"argv": ["{python}", "-c", code], "sandbox": "require"}
    (result,) = run_study(write_study(folder, options))
    assert result.outputs["answer"] == "False ['agent.py']"


def test_collected_files_are_never_read_through_links(folder):
    (folder / "secret.txt").write_text("private")
    code = f"import os; os.symlink({str(folder / 'secret.txt')!r}, 'a.txt'); open('b.txt', 'w')"
    options = {"argv": ["{python}", "-c", code], "collect": ["*.txt"]}
    (result,) = run_study(write_study(folder, options))
    assert result.outputs["files"] == {"b.txt": ""}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"prompt": "{qestion}"}, "did you mean 'question'"),
        ({"files": {"x.md": "nowhere.md"}}, "there is no"),
        ({"files": {"../x.md": "agent.py"}}, "no path within the workspace"),
        ({"argv": ["no-such-program-anywhere"]}, "there is no program"),
        ({"argv": ["{python}", "--api-key", "sk-12345678"]}, "looks like a key"),
        ({"metrics": {"cost_usd": "a[b"}}, "is no path into JSON"),
        ({"answer": "("}, "is no regular expression"),
        ({"prompt_by": "file"}, "must say where the prompt goes"),
        ({"home": "~"}, "your own home would be copied"),
    ],
)
def test_wrong_options_are_reported_before_anything_runs(folder, options, expected):
    with pytest.raises(StudyError, match=expected.replace("(", r"\(")):
        run_study(write_study(folder, options))
    assert not (folder / "out/ledger.sqlite").exists()


def test_a_ceiling_needs_a_known_cost_and_is_kept(folder):
    ceiling = {"run_budget": {"max_cost_usd": 0.4, "replicates": 5, "retries": 0}}
    with pytest.raises(StudyError, match="a ceiling can't be kept"):
        run_study(write_study(folder, **ceiling))
    study = write_study(folder, {"metrics": METRICS}, **ceiling)
    results = run_study(study)
    assert len(results) == 1  # a second one would exceed it
    assert "max_cost_usd" in str(results.stopped) or "budget" in str(results.stopped)

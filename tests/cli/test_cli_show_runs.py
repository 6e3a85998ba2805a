"""`fairtrial show DIR`: the list of runs; `--diff`: two runs side by side; `--follow`: live."""

import json
import subprocess
import sys
import threading

import pytest
import run_kit

from fairtrial import AgentBinding, Factor, Level, OutcomeSpec, RunBudget, Study, run_study
from fairtrial.study import agents

SOLVER = """
class Solver:
    def __init__(self, model):
        self.model = model

    def __call__(self, task):
        return {"answer": self.model}
"""
QUESTION = "How many legs has a spider, and why does it need so many of them?"


def talk(task):
    """Answers by style; fails at length 3 and has no score there."""
    style, length = task.factors["style"], task.factors["length"]
    task.record(agents.message_event("user", QUESTION))
    task.record(agents.model_call_event("kit-1", seconds=0.5))
    if length == 3:
        raise ValueError("lost for words")
    answer = {"terse": "Eight.", "polite": "If you please, it has eight legs, thank you."}[style]
    task.record(agents.message_event("assistant", answer))
    score = 0.25 * length + (style == "polite")
    return {
        "output": {"answer": answer},
        "metrics": {"score": score, "cost_usd": 0.5 / length},
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = Study(
        "talks",
        "Talks",
        factors=(Factor("style", levels=("terse", "polite")), Factor("length", levels=(1, 2, 3))),
        outcomes=(OutcomeSpec("score"),),
        run_budget=RunBudget(replicates=1),
        output_dir=tmp_path / "out",
    )
    run_study(study, agent_bindings={"default-agent": talk}, show_progress=False)
    return tmp_path / "out"


def listed(run, folder, *arguments):
    code, out, err = run("show", folder, "--json", *arguments)
    assert code == 0, err
    return [
        (item["factors"]["style"], item["factors"]["length"]) for item in json.loads(out)["runs"]
    ]


def test_runs_are_listed_with_what_differs_between_them(run, folder):
    code, out, _ = run("show", folder)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "talks: 6 of 6 runs done"
    assert lines[2].split() == [
        "run_id",
        "status",
        "style",
        "length",
        "score",
        "cost_usd",
        "error",
    ]
    assert sum("success" in line for line in lines) == 4
    assert sum("ValueError: lost for words" in line for line in lines) == 2


def test_runs_are_selected_by_expressions_and_sorted(run, folder):
    assert listed(run, folder, "--where", "score < 0.9 and style == 'terse'") == [
        ("terse", 1),
        ("terse", 2),
    ]
    assert listed(run, folder, "--where", "outputs.answer == 'Eight.'", "--sort", "-score") == [
        ("terse", 2),
        ("terse", 1),
    ]
    assert listed(run, folder, "--where", "factors.length == 3") == [("terse", 3), ("polite", 3)]
    assert listed(run, folder, "--failed", "--sort", "style") == [("polite", 3), ("terse", 3)]
    assert listed(run, folder, "--sort", "-score", "--limit", "1") == [("polite", 2)]
    without = listed(run, folder, "--sort", "score")
    assert {pair[1] for pair in without[-2:]} == {3}  # no score: they come last


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--where", "scor < 1"], "no run has a 'scor'; did you mean 'score'"),
        (["--where", "score <"], "is not an expression"),
        (["--where", "__import__('os')"], "calls something else"),
        (["--where", "score < 'a'"], "fails for"),
        (["--where", "outputs.anwser == 1"], "which isn't there"),
        (["--sort", "-scroe"], "did you mean 'score'"),
        (["run-1", "--failed"], "leave one out"),
        (["--follow"], "--follow needs the id of a run"),
        (["--diff", "run-nowhere", "style == 'terse'"], "no run 'run-nowhere'"),
        (["--diff", "style == 'x'", "style == 'terse'"], "no run that is done meets"),
        (
            ["--diff", "nonsense", "style == 'terse'"],
            "is no run, no level of a factor, and no expression",
        ),
        (["--diff", "style == 'terse'", "style == 'polite'", "--limit", "3"], "leave one out"),
    ],
)
def test_what_cannot_be_listed_is_reported(run, folder, arguments, words):
    code, _, err = run("show", folder, *arguments)
    assert code == 2
    assert words in " ".join(err.split())


def test_the_list_fits_a_narrow_terminal(run, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code, out, _ = run("show", folder)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80


@pytest.fixture
def asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = Study(
        "asked",
        "Asked",
        factors=(
            Factor("prompt style", levels=(Level("plain words", "Be brief."), Level("long", "2"))),
            Factor("agents.solver.options.model", levels=("small", "large")),
            Factor("size", levels=("small", "2")),
        ),
        agents={"solver": AgentBinding("diff_agents:Solver", {"model": "small"})},
        run_budget=RunBudget(replicates=1),
        output_dir=tmp_path / "out",
    )
    (tmp_path / "diff_agents.py").write_text(SOLVER)
    monkeypatch.syspath_prepend(tmp_path)
    run_study(study, show_progress=False)
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("first", "second", "differs"),
    [
        ("plain words", "long", {"prompt style": ["Be brief.", "2"]}),
        ("prompt style = plain words", "prompt style=2", {"prompt style": ["Be brief.", "2"]}),
        ("model=small", "large", {"agents.solver.options.model": ["small", "large"]}),
        (
            "model=small, long",
            "model=large, long",
            {"agents.solver.options.model": ["small", "large"]},
        ),
        (
            "model == 'small'",
            "model == 'large'",
            {"agents.solver.options.model": ["small", "large"]},
        ),
    ],
)
def test_levels_are_compared_as_the_study_names_them(run, asked, first, second, differs):
    code, out, err = run("show", asked, "--json", "--diff", first, second)
    assert code == 0, err
    document = json.loads(out)
    assert {name: document["differs"].get(name) for name in differs} == differs
    if "long" in first:
        assert document["a"]["factors"]["prompt style"] == "2"


def test_a_level_of_several_factors_needs_its_factor(run, asked):
    code, _, err = run("show", asked, "--diff", "small", "large")
    assert code == 2
    assert "several factors have a level 'small'" in err
    assert "agents.solver.options.model=small" in err


@pytest.mark.parametrize("columns", [80, 120])
def test_two_runs_stand_side_by_side(run, folder, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, _ = run("show", folder, "--diff", "style == 'terse'", "style == 'polite'")
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines)) <= columns
    assert "both: user" in out  # what is the same in both is printed once
    assert " ".join(out.split()).count("How many legs") == 1
    room = (columns - 3) // 2
    facts = [(line[:room].strip(), line[room + 3 :]) for line in lines]
    assert ("style: terse", "style: polite") in facts
    beside = dict(facts)["Eight."]
    assert beside.startswith("If you please, it has eight legs,")
    assert not any("length" in line for line in lines)  # the pair differs in as little as possible


def test_two_runs_are_compared_as_json(run, folder):
    runs = json.loads(run("show", folder, "--json", "--where", "length == 1")[1])["runs"]
    ids = [item["run_id"] for item in runs]
    code, out, _ = run("show", folder, "--diff", *ids, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["differs"]["style"] == ["terse", "polite"]
    assert document["a"]["outputs"] == {"answer": "Eight."}
    assert document["b"]["events"][0]["event_type"] == "message"


WAITING = """
import pathlib, sys, time
from fairtrial import Study, OutcomeSpec, run_study
from fairtrial.study import agents

def agent(task):
    task.record(agents.message_event("user", "first"))
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.01)
    task.record(agents.message_event("assistant", "second"))
    return {"answer": 1}

study = Study("live", "Live", outcomes=(OutcomeSpec("answer"),), output_dir="live")
run_study(study, agent_bindings={"default-agent": agent}, parallelism=2, show_progress=False)
"""


def test_a_run_is_followed_while_it_goes_on(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fairtrial.cli.run_follow.POLL_S", 0.01)
    go = tmp_path / "go"
    process = subprocess.Popen([sys.executable, "-c", WAITING, str(go)])
    try:
        while not (tmp_path / "live/ledger.sqlite").exists():
            assert process.poll() is None
        run_id = wait_for_event(run, process)
        threading.Timer(0.0, go.touch).start()
        code, out, _ = run("show", "live", run_id, "--follow")
    finally:
        go.touch()
        process.wait(60)
    assert code == 0
    assert out.splitlines() == ["  user", "    first", "  assistant", "    second", "success"]
    lines = run("show", "live", run_id, "--follow", "--json")[1].splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["first", "second"]


def wait_for_event(run, process):
    """Wait until a run under way shows what it has said so far; returns its id."""
    while True:
        assert process.poll() is None
        code, out, _ = run("status", "live")
        ids = [word for word in out.split() if word.startswith("run-")] if code == 0 else []
        if ids and "first" in run("show", "live", ids[0])[1]:
            return ids[0]


def test_a_run_of_a_study_that_stopped_is_not_waited_for(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = run_kit.make_study(tmp_path / "out", (1, 2), 1)
    run_kit.run(study, limit=1)
    pending = json.loads(run("status", "out", "--json")[1])
    assert pending["pending"] == 1
    done = json.loads(run("show", "out", "--json")[1])["runs"][0]["run_id"]
    from fairtrial import open_results

    with open_results("out") as results:
        other = next(s.run_id for s in results.reader.plan.specs() if s.run_id != done)
    assert "this run isn't done" in run("show", "out", other, "--follow")[1]

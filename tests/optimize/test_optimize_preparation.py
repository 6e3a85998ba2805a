"""What keeps an optimizer from starting is reported at once: which agent, where, what to do."""

import json
import os
from dataclasses import dataclass

import pytest
from repository_kit import make_repository

from fairtrial import Optimizer, Study, StudyError, dry_run_validate, load_problem, run_study
from fairtrial.optimize import optimizer, preparation

STUDY = """\
study_id: starting
title: Optimizers that can't start
agents:
  opt:
    use: optimize
    options:
      proposer: {proposer}
      proposer_options: {options}
problems:
  total: {{use: code, options: {{path: code/problem.yaml}}}}
  words: {{brief: none of code}}
problem_ids: [{problem}]
output_dir: out
"""
PROBLEM = {
    "problem_id": "total",
    "editable": ["src/*.py"],
    "check": [{"command": ["true"]}],
    "bench": [{"name": "total", "command": ["true"]}],
}
URL = "http://127.0.0.1:9/v1"
OPTION = "agents.opt.options.proposer_options"
MISSING = [
    ("command", {"argv": ["no-such-agent", "-p"]}, "argv[0]", "no-such-agent' on the path; inst"),
    ("command", {"argv": ["./agent.sh"]}, "argv[0]", "no program './agent.sh' in the project"),
    ("command", {"argv": ["{python}", "agent.py"]}, "argv[1]", "no script 'agent.py' in the proj"),
    ("command", {"argv": ["/no/agent"]}, "argv[0]", "no program '/no/agent'; install it, or"),
    ("command", {"argv": ["/etc/passwd"]}, "argv[0]", "can be run; `chmod +x` lets it be run"),
    ("command", {"argv": ["/etc"]}, "argv[0]", "can be run; name the program itself"),
    ("command", {"argv": ["sh"], "variables": ["NO_KEY"]}, "variables[0]", "`export NO_KEY=...`"),
    ("command", {"argv": ["sh"], "home": "gone"}, "home", "there is no "),
    (
        "chat",
        {"base_url": URL, "model": "m", "key_variable": "NO_KEY"},
        "key_variable",
        "NO_KEY is",
    ),
    ("chat", {"base_url": "nowhere", "model": "m"}, "base_url", "must be an http:// or https://"),
    ("replay", {"path": "gone.jsonl"}, "path", "code/gone.jsonl; name a replies.jsonl, or the"),
    ("replay", {"path": "src"}, "path", "code/src holds no record; it is there when"),
    ("patches", {"folder": "gone"}, "folder", "code/gone can't be read: No such file"),
    ("patches", {"folder": "gone", "glob": "*"}, "folder", "code/gone can't be read: No such file"),
    ("patches", {"folder": "bare"}, "folder", "are no diffs or folders in "),
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    files = {"src/mod.py": "x = 1\n", "problem.yaml": json.dumps(PROBLEM)}
    make_repository(tmp_path / "code", files)
    (tmp_path / "code/bare").mkdir()
    return tmp_path


def write(place, proposer, options, problem="total"):
    text = STUDY.format(proposer=proposer, options=json.dumps(options), problem=problem)
    (place / "study.yaml").write_text(text)


@pytest.mark.parametrize(("proposer", "options", "option", "why"), MISSING)
def test_it_is_found_by_check_and_before_anything_runs(run, place, proposer, options, option, why):
    write(place, proposer, options)
    for command in ("check", "run"):
        code, out, err = run(command, "study.yaml")
        assert (code, out) == (2, "")
        assert err.startswith(f"error: study.yaml:8: {OPTION}.{option}: "), err
        assert why in err
    assert not (place / "out").exists()


@pytest.mark.parametrize(("proposer", "options", "option", "why"), MISSING)
def test_optimize_says_so_in_words_of_its_own(run, place, proposer, options, option, why):
    given = [f"--option={name}={json.dumps(value)}" for name, value in options.items()]
    code, out, err = run("optimize", "code/problem.yaml", "--agent", proposer, *given)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: --agent {proposer} --option {option}: "), err
    assert why in err
    assert not (place / "artifacts").exists()


def test_options_that_name_existing_things_are_accepted(run, place, monkeypatch):
    monkeypatch.setenv("NO_KEY", "k" * 20)
    script = place / "code/agent.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (place / "code/agent.py").touch()
    (place / "code/bare/a.diff").touch()
    (place / "code/gone.jsonl").touch()
    for proposer, options in (
        ("command", {"argv": ["./agent.sh"], "variables": ["NO_KEY"], "home": "bare"}),
        ("command", {"argv": ["env", "A=b", "{python}", "agent.py"]}),
        ("command", {"argv": ["{python}", "-c", "1"]}),
        ("command", {"argv": [os.fspath(script)]}),
        ("chat", {"base_url": URL, "model": "m", "key_variable": "NO_KEY"}),
        ("replay", {"path": "gone.jsonl"}),
        ("patches", {"folder": "bare"}),
    ):
        write(place, proposer, options)
        for words in (("check",), ("run", "--dry-run")):
            code, _, err = run(*words, "study.yaml")
            assert (code, err) == (0, ""), (words, options)


def test_a_problem_that_is_none_of_code_is_found_by_check_as_well(run, place):
    write(place, "codemod", {}, problem="words")
    for command in ("check", "run"):
        code, _, err = run(command, "study.yaml")
        assert (code, "an optimizer needs a code problem" in err) == (2, True), err


def test_methods_of_the_user_s_own_agents_are_their_own_affair(tmp_path):
    class Mine:
        def check_start(self):
            raise AssertionError

        check_problem = check_start

        def __call__(self, task):
            return {"metrics": {"score": 1}}

    study = Study("mine", "Mine", output_dir=tmp_path / "out")
    (result,) = run_study(study, agent_bindings={"default-agent": Mine()}, executor="serial")
    assert result.status == "success"


def test_functions_of_the_user_s_own_are_imported_by_run_and_not_by_check(run, place):
    (place / "code/mine_to_start.py").write_text(
        "import pathlib\npathlib.Path('imported').touch()\n"
    )
    write(place, "function", {"use": "mine_to_start:gone"})
    assert run("check", "study.yaml")[0] == 0
    assert not (place / "imported").exists()
    code, _, err = run("run", "study.yaml")
    assert code == 2
    assert f"study.yaml:8: {OPTION}.use: " in err
    assert "has no 'gone'" in err
    assert not (place / "out").exists()


def test_a_problem_that_is_none_of_code_is_found_as_well(run, place):
    write(place, "codemod", {}, problem="words")
    code, _, err = run("run", "study.yaml")
    assert code == 2
    assert "study.yaml:6: agents.opt.options: an optimizer needs a code problem, and words" in err


def test_each_level_of_a_factor_is_checked(run, place):
    write(place, "patches", {"folder": "bare"})
    levels = "{name: agents.opt.options.proposer_options.folder, levels: [full, bare, gone]}"
    study = place / "study.yaml"
    study.write_text(f"{study.read_text()}factors:\n  - {levels}\n")
    (place / "code/full/one").mkdir(parents=True)
    for command in ("check", "run"):
        code, _, err = run(command, "study.yaml")
        assert code == 2
        assert [line.split(OPTION)[1][:24] for line in err.splitlines()[:2]] == [
            ".folder: there are no di",
            f".folder: {place}"[:24],
        ]
        assert err.endswith("2 mistakes\n")


def test_what_the_command_line_sets_has_no_line_in_the_file(run, place):
    write(place, "codemod", {})
    words = ("run", "study.yaml", "--set", "agents.opt.options.colour=1")
    code, _, err = run(*words)
    assert code == 2
    assert err.startswith("error: agents.opt.options.colour: unknown key")


def test_an_optimizer_made_in_python_is_checked_as_well(place):
    made = Optimizer("patches", {"folder": "bare"})
    problem = load_problem(place / "code/problem.yaml")
    study = Study("s", "t", agent_specs=("opt",), problem_ids=("total",))
    found = dry_run_validate(
        study, agent_bindings={"opt": made}, problem_registry={"total": problem}
    ).errors
    assert len(found) == 1
    assert (
        f"opt.options.proposer_options.folder: there are no diffs or folders in {place}" in found[0]
    )


def test_everything_that_is_missing_is_reported_at_once(run, place):
    chat = {"base_url": URL, "model": "m", "key_variable": "NO_KEY"}
    write(place, "chat", chat)
    study = place / "study.yaml"
    study.write_text(f"{study.read_text()}run_budget: {{max_cost_usd: 1}}\n")
    for command in ("check", "run"):
        code, _, err = run(command, "study.yaml")
        assert code == 2
        assert err.count("\n") == 3
        assert f"{OPTION}.prices: the price of the model 'm' is not known" in err
        assert f"{OPTION}.key_variable: the environment variable NO_KEY is not set" in err


# -- built once, and earlier versions --


def test_a_command_builds_the_proposer_once(run, place, monkeypatch):
    built, build_proposer = [], optimizer.build_proposer
    monkeypatch.setattr(
        optimizer, "build_proposer", lambda *given: built.append(1) or build_proposer(*given)
    )
    write(place, "patches", {"folder": "bare"})
    (place / "code/bare/a.diff").touch()
    for words in (("check", "study.yaml"), ("run", "--dry-run", "study.yaml")):
        assert run(*words)[0] == 0
        assert len(built) == 1, words
        built.clear()
    # Its check passes whatever the code says, which is found out when the arena is opened.
    words = ("optimize", "code/problem.yaml", "--agent", "patches", "--option", "folder=bare")
    code, _, err = run(*words, "--unsandboxed")
    assert (code, "passes although every editable file raises" in err) == (2, True), err
    assert len(built) == 1


def test_a_proposer_that_is_none_is_refused(monkeypatch):
    @dataclass(frozen=True)
    class Duck:
        pass

    monkeypatch.setattr(preparation.plugins, "load", lambda group, name: Duck)
    with pytest.raises(StudyError, match=r"'duck' \(.*Duck\) can't be used; its class must derive"):
        Optimizer("duck")


def test_studies_of_the_version_before_are_understood(place):
    study = Study.from_dict(
        {
            "study_id": "s",
            "title": "t",
            "agents": {"opt": {"use": "optimise", "options": {"proposer": "patches", "lines": 2}}},
            "problems": {"total": {"use": "code", "options": {"path": "code/problem.yaml"}}},
            "agent_specs": ["opt"],
            "problem_ids": ["total"],
        }
    )
    (mistake,) = dry_run_validate(study).errors
    assert "options.proposer_options: 'folder' is missing" in mistake
    assert Optimizer.modernize_options({"lines": 2, "repair": True}) == {
        "lineages": 2,
        "repair": True,
    }

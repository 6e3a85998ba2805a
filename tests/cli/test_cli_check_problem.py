"""`fairtrial check` of a problem file: the files that it names must exist; nothing is run."""

import json

import pytest

PROBLEM = {
    "problem_id": "sum",
    "editable": ["src/*.py"],
    "import_roots": ["src"],
    "check": [
        {"function": "mod:total", "inputs": "inputs.py:make"},
        {"function": "mod:total", "calls": "calls.json"},
    ],
    "bench": [{"name": "b", "call": "mod:total", "inputs": "inputs.py:make"}],
}


@pytest.fixture
def project(write, tmp_path):
    (tmp_path / "src").mkdir()
    write("raise SystemExit('somebody runs it')\n", "src/mod.py")
    write("raise SystemExit('somebody runs it')\n\n\ndef make(rng): ...\n", "inputs.py")
    write([], "calls.json")

    def project(**changes):
        return write({**PROBLEM, **changes}, "problem.yaml")

    return project


def test_a_correct_problem_gets_the_command_that_checks_more(run, project):
    project()
    code, out, err = run("check", "problem.yaml")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "problem.yaml: no mistakes; 2 checks, 1 benchmark; nothing was run",
        "next:    fairtrial evaluate problem.yaml  # runs it on the unchanged code",
    ]
    result = json.loads(run("check", "problem.yaml", "--json")[1])
    assert (result["ok"], result["check_more"]) == (True, "fairtrial evaluate problem.yaml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"editable": ["scr/*.py"]}, "editable: scr/*.py matches no file"),
        ({"import_roots": ["scr"]}, "import_roots[0]: there is no folder"),
        ({"repo": "elsewhere"}, "repo: there is no folder"),
        ({"cwd": "elsewhere"}, "cwd: there is no folder"),
        ({"chek": []}, "chek: unknown key"),
        (
            {"check": [{"function": "mod:total", "inputs": "inputs.py:maker"}]},
            "inputs.py has no 'maker'; did you mean 'make'?",
        ),
        (
            {"bench": [{"name": "b", "call": "mod:total", "inputs": "other.py:make"}]},
            "bench[0].inputs: there is no file",
        ),
        ({"check": [{"function": "mod:total", "calls": "no.json"}]}, "calls: there is no file"),
        (
            {"check": [{"function": "mod:total", "inputs": "calls.py:make"}]},
            "calls.py can't be read as Python",
        ),
    ],
)
def test_a_file_that_a_problem_names_and_is_missing_is_shown_with_its_line(
    run, project, changes, message
):
    path = project(**changes)
    (path.parent / "calls.py").write_text("no Python at all\n")
    code, out, err = run("check", "problem.yaml")
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("error: problem.yaml:")
    assert err.partition("problem.yaml:")[2].partition(":")[0].isdecimal()


@pytest.mark.parametrize(
    "text",
    ["from other import make", "from other import *", "make = print", "if 1:\n    make = 1"],
)
def test_a_maker_may_be_given_its_name_in_any_way(run, project, write, text):
    project()
    write(f"{text}\n", "inputs.py")
    assert run("check", "problem.yaml")[0] == 0


def test_other_commands_for_studies_say_who_takes_a_problem(run, project):
    project()
    code, _, err = run("plan", "problem.yaml")
    assert code == 2
    assert "`fairtrial check` looks at it" in err

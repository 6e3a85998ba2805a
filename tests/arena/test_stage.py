"""Stages: what commands see of a slot, and how it is derived from the slot."""

from pathlib import Path

import pytest

from fairtrial.arena import Check, CodeProblem
from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.sandbox import Limits, Mount, Plain

PYTHON = Path("/env/bin/python")


def make_stage(*, folders=(), **changes):
    problem = changes.pop("problem", {})
    given = {
        "problem": CodeProblem("p", check=(Check(command=("true",)),), **problem),
        "interpreter": Interpreter(PYTHON, (3, 11, 0), tuple(map(Path, folders)), True),
        "sandbox": Plain(),
        "slot": Path("/pool/1"),
        "seen": Path("/project"),
        "import_roots": ("src", "."),
    }
    return Stage(**(given | changes))


def test_imports_start_in_the_slot():  # 12
    command = make_stage().command(["x"], timeout_s=1, path_tail=[Path("/ours")])
    assert command.env["PYTHONPATH"] == "/project/src:/project:/ours"


def test_variables_come_from_the_problem_and_from_nowhere_else(monkeypatch):  # 11
    monkeypatch.setenv("SOME_API_KEY", "secret")
    stage = make_stage(problem={"env": {"PYTHONHASHSEED": "7", "MINE": "1"}})
    env = stage.command(["x"], timeout_s=1, env={"PART": "2"}).env
    assert set(env) == {
        "PATH",
        "LANG",
        "MINE",
        "PART",
        "PYTHONPATH",
        "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONNOUSERSITE",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
    }
    assert (env["PYTHONHASHSEED"], env["MINE"], env["PART"]) == ("7", "1", "2")
    assert env["PATH"].startswith("/env/bin:")


def test_a_command_starts_in_the_projects_folder_with_its_limits():  # 24
    stage = make_stage(problem={"cwd": "part", "limits": Limits(memory_mb=99)})
    command = stage.command(["{python}", "--with={python}"], timeout_s=3)
    assert command.argv == ("/env/bin/python", "--with=/env/bin/python")
    assert command.cwd == Path("/project/part")
    assert command.limits.memory_mb == 99
    assert command.timeout_s == 3


@pytest.mark.parametrize("is_writable", [True, False])
def test_commands_see_the_slot_the_interpreter_and_the_harness(is_writable):  # 11, 13
    stage = make_stage(
        folders=["/python", "/project/.venv"],
        included=(Mount(Path("/project/data"), Path("/project/data")),),
        is_writable=is_writable,
    )
    view, here = stage.view(), Mount(Path("/pool/1"), Path("/project"))
    readable = [Mount(folder, folder) for folder in (Path("/python"), HARNESS)]
    assert list(view.readable) == readable + ([] if is_writable else [here])
    assert view.writable == ((here,) if is_writable else ())
    # An environment in the project lies over the slot, where the slot has none.
    assert [mount.target for mount in view.over] == [Path("/project/.venv"), Path("/project/data")]

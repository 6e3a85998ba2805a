"""toolz: flat, pure Python, with its tests inside the package; judged with our own Python."""

import json
import subprocess
import sys

import pytest
from mischief import ENDS, instead
from project import (
    LATE,
    LIMITS,
    MARK,
    PATIENCE,
    TIMEOUT_S,
    Project,
    ends,
    judge,
    surprises,
    unharmed,
)
from registry import Sdist

from fairtrial import load_problem

TOOLZ = Sdist("toolz", "1.0.0", "2c86e3d9a04798ac556793bced838816296a2f085017664e4995cb40a1047a02")
CODE = "toolz/itertoolz.py"
LOOP = """    rv = {}
    for k, v in d.items():
        rv[k] = v.__self__
    return rv
"""
SHORT = "    return {k: v.__self__ for k, v in d.items()}\n"
SHORT_AGAIN = """    # Each value is the append of its list.
    return {
        key: append.__self__ for key, append in d.items()
    }
"""
DROP = "return itertools.islice(seq, n, None)"
EXPECTED = {
    **ENDS,
    "right": "passed",
    "right again": "passed",  # its module could tell the difference: judged by itself
    "unchanged": "passed, like base",
    "wrong": "rejected: tests",
}


@pytest.fixture
def toolz(tmp_path, home):
    project = Project(TOOLZ, tmp_path / "toolz")
    project.commit()
    return project


def make_candidates(project):
    text = project.read(CODE)
    return [
        project.candidate("right", CODE, instead(text, LOOP, SHORT)),
        project.overlay("right again", CODE, instead(text, LOOP, SHORT_AGAIN)),
        project.overlay("unchanged", CODE, text),
        project.candidate("wrong", CODE, instead(text, DROP, DROP.replace("n,", "n + 1,"))),
        *project.hostile(
            CODE,
            inside="d = collections.defaultdict(lambda: [].append)",
            on_import="import heapq",
            test="toolz/tests/test_dicttoolz.py",
        ),
    ]


def write_problem(project, path, timeout_s=TIMEOUT_S):
    """The problem as a file beside the repository."""
    command = ["{python}", "-m", "pytest", "-q"]
    fields = {
        "problem_id": "toolz",
        "repo": str(project.folder),
        "editable": ["toolz/**/*.py"],
        "check": [{"command": command, "timeout_s": timeout_s}],
        "limits": {"memory_mb": LIMITS.memory_mb, "processes": LIMITS.processes},
        "env": {MARK: project.token, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    }
    path.write_text(json.dumps(fields), "utf-8")  # which is YAML
    return path


def write_candidate(candidate, folder):
    """A candidate as a file or folder, as a person would hand it over."""
    if candidate.diff is not None:
        path = folder / f"{candidate.name}.diff"
        path.write_bytes(candidate.diff)
        return path
    for name, state in candidate.files.items():
        path = folder / candidate.name / name
        path.parent.mkdir(parents=True)
        path.write_bytes(state.content)
    return folder / candidate.name


def evaluate(problem, paths, *options):
    """What `fairtrial evaluate --json` prints; None if the base was late."""
    words = [
        sys.executable,
        "-m",
        "fairtrial",
        "evaluate",
        "--check-only",
        problem,
        *paths,
        "--json",
        *options,
    ]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.stdout, done.stderr.decode()
    told = json.loads(done.stdout)
    if LATE in told.get("error", ""):
        return None
    assert done.returncode == 0, (told, done.stderr.decode())
    return told


def is_in_time(told):
    """Whether only what hangs took too long."""
    late = [each for each in told["candidates"] if said(each)[1] == "timeout"]
    return all("hanging" in each["name"] for each in late)


def test_warm_in_python_and_cold_on_the_command_line_give_the_same_right_verdicts(
    toolz, home, tmp_path
):
    candidates = make_candidates(toolz)
    problem = write_problem(toolz, tmp_path / "problem.yaml")
    with unharmed(toolz, home):
        judged = judge(load_problem(problem), candidates)
    assert not surprises(ends(judged), EXPECTED)
    assert {judged[name].basis for name in ("right", "unchanged")} == {"tests only"}
    assert "test_itertoolz.py::test_drop" in judged["wrong"].rejection.message

    (tmp_path / "given").mkdir()
    paths = [write_candidate(each, tmp_path / "given") for each in candidates]
    for timeout_s in (TIMEOUT_S, PATIENCE * TIMEOUT_S):  # on a busy machine others may be late
        with unharmed(toolz, home):
            told = evaluate(write_problem(toolz, problem, timeout_s), paths, "--cold")
        if told is not None and is_in_time(told):
            break
    assert [each["name"] for each in told["candidates"]] == [path.name for path in paths]
    assert [said(each) for each in told["candidates"]] == [
        (each.verdict, str(each.rejection.reason) if each.rejection else "")
        for each in judged.values()
    ]


def said(candidate):
    """Verdict and kind of reason, of what was printed."""
    return candidate["verdict"], (candidate["reason"] or "").partition(":")[0]

"""pluggy: what pytest itself is made of, editable-installed where pytest is.

The candidate's pluggy runs the tests that judge it, and no process that has imported pytest
beforehand may lend it another one.
"""

import pytest
from mischief import ENDS, instead
from project import TIMEOUT_S, Project, ends, judge, surprises, unharmed
from registry import Sdist

from fairtrial import Check

PLUGGY = Sdist(
    "pluggy", "1.5.0", "2cffa88e94fdc978c4c574f15f9e59b7f4201d439195c3715ca9e2486f1d0cf1"
)
CODE = "src/pluggy/_callers.py"
ORDER = "for hook_impl in reversed(hook_impls):"
EXPECTED = {
    **ENDS,
    "right": "passed",
    "wrong": "rejected: tests",
}


@pytest.fixture
def pluggy(tmp_path, home):
    project = Project(PLUGGY, tmp_path / "pluggy")
    project.make_environment()
    project.install("--no-deps", "--editable", project.folder)
    project.commit()
    return project


def test_pytest_runs_with_the_candidates_pluggy(pluggy, home):
    text = pluggy.read(CODE)
    candidates = [
        pluggy.candidate("right", CODE, instead(text, ORDER, "for hook_impl in hook_impls[::-1]:")),
        pluggy.candidate("wrong", CODE, instead(text, ORDER, "for hook_impl in hook_impls:")),
        *pluggy.hostile(
            CODE,
            inside="results: list[object] = []",
            on_import="import warnings",
            test="testing/test_tracer.py",
        ),
    ]
    command = ("{python}", "-m", "pytest", "-q", "testing")
    problem = pluggy.problem(
        editable=("src/**/*.py",), check=(Check(command=command, timeout_s=TIMEOUT_S),)
    )
    with unharmed(pluggy, home):
        judged = judge(problem, candidates)
    assert not surprises(ends(judged), EXPECTED)

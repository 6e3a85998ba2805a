"""setuptools-scm: its tests make repositories and run git in them, inside the sandbox."""

import pytest
from mischief import ENDS, instead
from project import Project, ends, judge, surprises, unharmed
from registry import Sdist

from fairtrial import Check

SETUPTOOLS_SCM = Sdist(
    "setuptools-scm", "8.1.0", "42dea1b65771cba93b7a515d65a65d8246e560768a66b9106a592c8e7f26c8a7"
)
CODE = "src/setuptools_scm/git.py"
SUFFIX, COUNT = "describe_output[:-6]", 'res.stdout.count("\\n") + 1'
EXPECTED = {
    **ENDS,
    "right": "passed",
    "right again": "passed",  # its module could tell the difference: judged by itself
    "wrong": "rejected: tests",
}


@pytest.fixture
def scm(tmp_path, home):
    project = Project(SETUPTOOLS_SCM, tmp_path / "setuptools-scm")
    # Its conftest asks for all of them.
    project.make_environment("setuptools==75.8.0", "wheel==0.45.1", "build==1.2.2")
    project.install("--no-deps", "--no-build-isolation", "--editable", project.folder)
    project.commit()
    return project


def test_tests_that_run_git_judge_candidates_and_reach_no_repository_of_the_users(scm, home):
    text = scm.read(CODE)
    right = instead(text, SUFFIX, 'describe_output.removesuffix("-dirty")')
    candidates = [
        scm.candidate("right", CODE, right),
        scm.overlay("right again", CODE, right.replace("split = ", "split   = ")),
        scm.candidate("wrong", CODE, instead(text, COUNT, COUNT.removesuffix(" + 1"))),
        *scm.hostile(
            CODE,
            inside='split = describe_output.rsplit("-", 2)',
            on_import="import dataclasses",
            test="testing/test_git.py",
        ),
    ]
    quick = "not signed and not unnormalized"  # which start programs that are slow to start
    command = ("{python}", "-m", "pytest", "-q", "testing/test_git.py", "-k", quick)
    problem = scm.problem(
        editable=("src/**/*.py",), git=True, check=(Check(command=command, timeout_s=12.0),)
    )
    with unharmed(scm, home):
        judged = judge(problem, candidates)
    assert not surprises(ends(judged), EXPECTED)

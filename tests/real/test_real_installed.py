"""itsdangerous: src layout, installed in an environment of its own that lies in the tree.

A wrong candidate must not pass because it is the user's tree, or a copy of it in site-packages,
that the tests import.
"""

import pytest
from mischief import ENDS, instead
from project import TIMEOUT_S, Project, ends, judge, surprises, unharmed
from registry import Sdist

from fairtrial import Check
from fairtrial.core import StudyError

ITSDANGEROUS = Sdist(
    "itsdangerous", "2.2.0", "e0050c0b7da1eea53ffaf149c0cfbb5c6e2e2b69c4bef22c81fa6eb73e5f6173"
)
CODE = "src/itsdangerous/encoding.py"
MAKER = """
def numbers(rng):
    return (rng.getrandbits(rng.choice([1, 8, 24, 63])) << rng.choice([0, 8]),), {}
"""
PADDED = """    string += b"=" * (-len(string) % 4)
"""
EXPECTED = {
    **ENDS,
    "right": "passed",
    "right again": "passed",  # its module could tell the difference: judged by itself
    "wrong": "rejected: tests",
    "wrong where no test looks": "rejected: different results",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The project with an environment that it is not yet installed in."""
    project = Project(ITSDANGEROUS, tmp_path_factory.mktemp("real") / "itsdangerous")
    project.make_environment("freezegun==1.5.1")
    (project.folder / "benchmarks").mkdir()
    (project.folder / "benchmarks" / "inputs.py").write_text(MAKER)
    project.commit()
    return project


@pytest.fixture
def editable(environment, home):
    environment.install("--no-deps", "--editable", environment.folder)
    return environment


@pytest.fixture
def installed(environment, home):
    environment.install("--no-deps", environment.folder)
    return environment


def make_problem(project, **fields):
    return project.problem(
        editable=("src/**/*.py",),
        check=(
            Check(command=("{python}", "-m", "pytest", "-q"), timeout_s=TIMEOUT_S),
            Check(
                function="itsdangerous.encoding:int_to_bytes",
                inputs="benchmarks/inputs.py:numbers",
                timeout_s=TIMEOUT_S,
            ),
        ),
        **fields,
    )


def make_candidates(project):
    text = project.read(CODE)
    padded = '    missing = -len(string) % 4\n    string = string + missing * b"="\n'
    other = (
        '    lacking = (-len(string)) % 4  # to a multiple\n    string = string + lacking * b"="\n'
    )
    return [
        project.candidate("right", CODE, instead(text, PADDED, padded)),
        project.overlay("right again", CODE, instead(text, PADDED, other)),
        project.candidate("wrong", CODE, instead(text, "rjust", "ljust")),
        project.candidate(
            "wrong where no test looks",
            CODE,
            instead(text, '.lstrip(b"\\x00")', '.strip(b"\\x00")'),
        ),
    ]


def make_hostile(project):
    return project.hostile(
        CODE,
        inside='return base64.urlsafe_b64encode(string).rstrip(b"=")',
        on_import="import struct",
        test="tests/test_itsdangerous/test_signer.py",
    )


def test_an_editable_install_leads_into_the_slot(editable, home):
    candidates = [*make_candidates(editable), *make_hostile(editable)]
    with unharmed(editable, home):
        judged = judge(make_problem(editable), candidates)
    assert not surprises(ends(judged), EXPECTED)
    assert judged["right"].basis == "compared results"
    assert judged["wrong where no test looks"].rejection.failures[0].differences


def test_without_a_root_for_imports_the_editable_install_itself_leads_into_the_slot(editable, home):
    with unharmed(editable, home):
        judged = judge(make_problem(editable, import_roots=()), make_candidates(editable))
    assert not surprises(ends(judged), {name: EXPECTED[name] for name in judged})


def test_an_ordinary_install_does_not_win_over_the_slot(installed, home):
    with unharmed(installed, home):
        judged = judge(make_problem(installed), make_candidates(installed))
    assert not surprises(ends(judged), {name: EXPECTED[name] for name in judged})


def test_where_an_ordinary_install_does_win_its_file_is_named(installed, home):
    with unharmed(installed, home), pytest.raises(StudyError) as caught:
        judge(make_problem(installed, import_roots=("tests",)), make_candidates(installed))
    assert str(installed.folder / ".venv") in str(caught.value)
    assert "/site-packages/itsdangerous/__init__.py" in str(caught.value)

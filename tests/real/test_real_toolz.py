"""toolz: flat, pure Python, its tests inside of the package; judged with our own Python."""

import pytest
from mischief import (
    CRASHING, FORKING, HANGING, LEAKING, LEAVING, deleting, instead, rewriting, writing,
)  # fmt: skip
from project import TIMEOUT_S, Project, judge, unharmed
from registry import Sdist

from fairtrial import Check

TOOLZ = Sdist("toolz", "1.0.0", "2c86e3d9a04798ac556793bced838816296a2f085017664e4995cb40a1047a02")
CODE, TESTS = "toolz/itertoolz.py", "toolz/tests"
GROUPING = """    rv = {}
    for k, v in d.items():
        rv[k] = v.__self__
    return rv
"""
MAKER = """
def words(rng):
    return (len, ["x" * rng.randrange(5) for _ in range(rng.randrange(9))]), {}
"""


@pytest.fixture
def toolz(tmp_path):
    project = Project(TOOLZ, tmp_path / "toolz")
    project.commit()
    return project


def problem(project):
    return project.problem(
        editable=("toolz/**/*.py", "tlz/**/*.py"),
        check=(Check(command=("{python}", "-m", "pytest", "-q"), timeout_s=TIMEOUT_S),),
    )


def candidates(project):
    text = project.read(CODE)
    right = instead(text, GROUPING, "    return {k: v.__self__ for k, v in d.items()}\n")
    tests = project.folder / TESTS / "**/test_*.py"
    return [
        project.candidate("right", CODE, right),
        project.overlay(
            "right again",
            CODE,
            right.replace("{k: v.__self__ for k, v in d.items()}",
                          "{  # shorter\n        key: add.__self__\n        for key, add in d.items()\n    }"),
        ),
        project.candidate(
            "wrong", CODE, instead(text, "return itertools.islice(seq, n, None)", "return itertools.islice(seq, n + 1, None)"),
        ),
        *project.mischief(
            CODE, "d = collections.defaultdict(lambda: [].append)",
            crashing=CRASHING, leaving=LEAVING, hanging=HANGING, leaking=LEAKING, forking=FORKING,
            writing_outside=writing(project.far_places()),
            writing_into_the_tree=writing([project.folder / "toolz" / "new.py"]),
        ),
        *project.mischief(CODE, "import heapq", deleting_tests=deleting(tests), rewriting_tests=rewriting(tests)),
        project.candidate("without a test", f"{TESTS}/test_dicttoolz.py", None),
    ]


def test_toolz(toolz, home):
    with unharmed(toolz, home):
        evaluation, found = judge(problem(toolz), candidates(toolz))
    import pprint; pprint.pprint(found); pprint.pprint(evaluation.notes)
    for j in evaluation.judgements: print(j.name, round(j.check_s,2), round(j.cpu_s,2), round(j.peak_rss_mb), j.rejection and j.rejection.message[:150], j.not_exercised)
    with unharmed(toolz, home):
        e2, found2 = judge(problem(toolz), candidates(toolz), warm=False)
    assert found2 == found
    assert 0

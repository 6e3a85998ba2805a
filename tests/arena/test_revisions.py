"""Candidates and bases that are git revisions, on real repositories."""

import sys
from dataclasses import replace

import pytest
from repository_kit import fingerprint, make_repository, read_tree, run_git, write_files

from fairtrial.arena import (
    ArenaSettings,
    Candidate,
    Check,
    CodeProblem,
    Reason,
    Verdict,
    evaluate_candidates_sync,
)
from fairtrial.arena.candidate_sources import read_candidates, read_pair
from fairtrial.arena.snapshot.revisions import split_range
from fairtrial.arena.snapshot.snapshot import compute_tree, take_snapshot
from fairtrial.core import StudyError

MODULE = "def twice(number):\n    return number + number\n"
TEST = "from pair import twice\n\ndef test_twice():\n    assert twice(3) == 6\n"
FILES = {
    "src/pair.py": MODULE,
    "tests/test_pair.py": TEST,
    "CHANGELOG.md": "# Changes\n",
    ".gitignore": "__pycache__/\n",
}
PYTEST = Check(command=("{python}", "-m", "pytest", "-q", "tests/"))


@pytest.fixture
def top(tmp_path):
    """A repository whose branch `faster` also changes a test and the changelog."""
    top = make_repository(tmp_path / "project", FILES)
    run_git(top, "checkout", "--quiet", "-b", "faster")
    write_files(
        top,
        {
            "src/pair.py": MODULE.replace("number + number", "2 * number"),
            "src/helper.py": "LEVEL = 1\n",
            "tests/test_pair.py": TEST + "    assert twice(0) == 0\n",
            "CHANGELOG.md": "# Changes\n\n- Faster\n",
        },
    )
    commit(top, "faster")
    run_git(top, "checkout", "--quiet", "main")
    return top


def commit(top, message):
    run_git(top, "add", "--all")
    run_git(top, "commit", "--quiet", "--message", message)


@pytest.fixture
def problem(top):
    return CodeProblem(
        "pair", editable=("src/*.py",), python=sys.executable, check=(PYTEST,), folder=top
    )


def evaluate(problem, *sources, **settings):
    settings = {"unsandboxed": True, "timing": "none", "audit": False, "cache": False, **settings}
    settings = ArenaSettings(**settings)
    return evaluate_candidates_sync(problem, sources, slots=1, settings=settings)


def test_a_branch_is_judged_without_its_tests_and_changelog(top, problem):
    before = fingerprint(top)
    (judgement,) = evaluate(problem, "faster").judgements
    assert judgement.verdict == Verdict.PASSED
    assert judgement.digest
    (note,) = judgement.notes
    assert "CHANGELOG.md, tests/test_pair.py" in note
    assert fingerprint(top) == before


def test_strict_paths_reject_a_branch_that_changes_a_test(problem):
    (judgement,) = evaluate(problem, "faster", strict_paths=True).judgements
    assert judgement.rejection.reason == Reason.OUTSIDE


def test_a_branch_that_breaks_a_test_is_rejected(top, problem):
    run_git(top, "checkout", "--quiet", "-b", "wrong")
    write_files(top, {"src/pair.py": MODULE.replace("number + number", "number")})
    commit(top, "wrong")
    run_git(top, "checkout", "--quiet", "main")
    (judgement,) = evaluate(problem, "wrong").judgements
    assert judgement.rejection.reason == Reason.TESTS


def test_a_revision_can_delete_and_rename_files(top, problem):
    run_git(top, "rm", "--quiet", "src/pair.py")
    commit(top, "gone")
    (judgement,) = evaluate(replace(problem, base="HEAD~1"), "HEAD").judgements
    assert judgement.rejection is not None


def test_a_range_is_judged_against_its_first_side(top, problem):
    """The tree on disk is broken, and isn't looked at."""
    write_files(top, {"src/pair.py": "raise SystemError\n"})
    evaluation = evaluate(problem, "main..faster")
    assert evaluation.judgements[0].verdict == Verdict.PASSED
    assert any("the base is main (" in note for note in evaluation.notes)


def test_the_tree_as_it_is_can_be_judged_against_a_revision(top, problem):
    write_files(top, {"src/pair.py": MODULE.replace("number + number", "number * 2")})
    write_files(top, {"src/new.py": "X = 1\n"})
    (judgement,) = evaluate(replace(problem, base="main"), ".").judgements
    assert judgement.verdict == Verdict.PASSED
    assert judgement.digest
    (same,) = evaluate(problem, ".").judgements
    assert same.duplicate_of == "base"


def test_a_stash_is_a_revision(top, problem):
    write_files(top, {"src/pair.py": MODULE.replace("number + number", "number")})
    run_git(top, "stash")
    (judgement,) = evaluate(problem, "stash@{0}").judgements
    assert judgement.rejection.reason == Reason.TESTS


@pytest.mark.anyio
async def test_three_dots_start_from_the_merge_base(top, problem):
    first = run_git(top, "rev-parse", "main").decode().strip()
    write_files(top, {"CHANGELOG.md": "# Changes\n\n- Meanwhile\n"})
    commit(top, "meanwhile")
    based, (candidate,) = await read_candidates(problem, ["main...faster"])
    assert (based.base, candidate.revision) == (first, "faster")
    based, _ = await read_candidates(problem, ["main..faster"])
    assert based.base == "main"


@pytest.mark.anyio
async def test_ranges_with_different_bases_are_refused_together(problem):
    with pytest.raises(StudyError, match="different bases"):
        await read_candidates(problem, ["main..faster", "faster..main"])


@pytest.mark.anyio
async def test_what_is_neither_path_nor_revision_is_refused(problem):
    with pytest.raises(StudyError, match="no such file, folder or revision") as caught:
        await read_candidates(problem, ["nowhere"])
    assert "git revision" in str(caught.value)
    with pytest.raises(StudyError, match="there is no revision 'nowhere'"):
        await read_candidates(problem, ["nowhere..main"])


@pytest.mark.anyio
async def test_a_first_version_that_is_a_revision_becomes_the_base(problem):
    based, (first, second) = await read_pair(problem, "main", "faster")
    assert (based.base, first, second.revision) == ("main", Candidate("main", files={}), "faster")
    based, (first, second) = await read_pair(problem, "base", "faster")
    assert (based.base, first.name, second.revision) == ("", "base", "faster")
    based, (first, second) = await read_pair(problem, "main...faster")
    assert (first.name, second.name) == ("base", "faster")
    with pytest.raises(StudyError, match="is a range of revisions"):
        await read_pair(problem, "main..faster", "main")


def test_the_problem_names_its_base_and_its_identity_changes_only_then(problem):
    assert "base" not in problem.identity()
    assert replace(problem, base="main").identity()["base"] == "main"


def test_files_that_a_problem_names_come_from_the_tree_on_disk(top, problem):
    calls = '[{"args": [3], "kwargs": {}, "result": 6}]'
    write_files(top, {"calls.json": calls})
    check = Check(function="pair:twice", calls="calls.json")
    evaluation = evaluate(replace(problem, check=(check,), base="main"), "faster")
    assert evaluation.judgements[0].verdict == Verdict.PASSED


@pytest.mark.anyio
async def test_a_snapshot_of_a_revision_has_its_files_and_no_others(top, tmp_path):
    write_files(top, {"untracked.txt": "x", "src/pair.py": "changed"})
    before = fingerprint(top)
    home = tmp_path / "home"
    home.mkdir()
    snapshot = await take_snapshot(
        top,
        home,
        revision="faster",
        kept={name: top / name for name in ("untracked.txt", "no.txt")},
    )
    files = read_tree(snapshot.repo, snapshot.tree)
    assert files.pop(b"untracked.txt") == (0o100644, b"x")
    assert files == read_tree(top, "faster")
    assert fingerprint(top) == before


@pytest.mark.anyio
async def test_the_tree_of_a_problem_with_a_base_is_that_of_the_revision(top, problem):
    tree = await compute_tree(replace(problem, base="main"))
    assert tree == run_git(top, "rev-parse", "main^{tree}").decode().strip()
    write_files(top, {"src/pair.py": "changed"})
    assert await compute_tree(replace(problem, base="main")) == tree
    assert await compute_tree(problem) != tree


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a..b", ("a", "..", "b")),
        ("a...b", ("a", "...", "b")),
        ("a..", ("a", "..", "HEAD")),
        ("...b", ("HEAD", "...", "b")),
        ("v1.2..v1.3", ("v1.2", "..", "v1.3")),
        ("main", None),
        ("v1.2", None),
        ("..", None),
    ],
)
def test_ranges_are_split_like_git_does(text, parts):
    assert split_range(text) == parts

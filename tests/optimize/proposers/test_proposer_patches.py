"""A folder of patches as a proposer: which line gets which, and what can't be read."""

from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from hypothesis import given, strategies as st

from fairtrial.arena import Verdict
from fairtrial.core import StudyError, build_record
from fairtrial.optimize import Brief, PreflightContext, Request, RequestKind, Tried
from fairtrial.optimize.proposers.patches import PatchesProposer

BRIEF = Brief("p", "faster", {"a.py": "x = 1\n"})
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = {}\n"


@dataclass
class Bench:
    folder: Path


def ask(proposer, line=0, kind=RequestKind.INITIAL, **more):
    return anyio.run(proposer.propose, BRIEF, Request(kind, line, 0, **more))


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "found"
    (found / "b-folder").mkdir(parents=True)
    (found / "b-folder" / "a.py").write_text("x = 3\n")
    (found / "c.patch").write_text(DIFF.format(4))
    (found / "a.diff").write_text(DIFF.format(2))
    (found / "README.md").write_text("not one of them")
    (found / ".hidden.diff").write_text("nor this")
    return found


def test_each_line_gets_the_next_in_the_order_of_names(folder):
    replies = [ask(PatchesProposer(folder), line) for line in range(3)]
    names = [reply.candidates[0].name for reply in replies]
    assert names == ["a.diff", "b-folder", "c.patch"]
    assert replies[0].candidates[0].diff == DIFF.format(2).encode()
    assert replies[1].candidates[0].files["a.py"].content == b"x = 3\n"
    assert [reply.usage.cost_usd for reply in replies] == [0.0] * 3
    assert replies[0].candidates[0].origin == str(folder / "a.diff")


def test_no_more_than_there_are(folder):
    reply = ask(PatchesProposer(folder), 3)
    assert reply.candidates == ()
    assert reply.refusal == f"{folder} holds 3 candidates, and no more"


def test_the_glob_chooses(folder):
    proposer = PatchesProposer(folder, glob="*.patch")
    assert ask(proposer, 0).candidates[0].name == "c.patch"
    assert "holds 1 candidates" in ask(proposer, 1).refusal


def test_an_unreadable_patch_is_a_refusal_for_its_lineage_only(folder):
    proposer = PatchesProposer(folder, glob="[Rc]*")
    assert "this is not a candidate" in ask(proposer, 0).refusal
    assert ask(proposer, 1).candidates[0].name == "c.patch"


@pytest.mark.parametrize("kind", [RequestKind.REPAIR, RequestKind.REFINE, RequestKind.ADAPT])
def test_only_first_proposals(folder, kind):
    proposer = PatchesProposer(folder)
    about = (Tried("0.0", "d", "", Verdict.REJECTED),)
    assert not proposer.can(kind)
    assert ask(proposer, 0, kind, about=about).refusal == (
        "a folder of patches can't repair or refine them"
    )
    assert proposer.can(RequestKind.INITIAL)


def test_a_relative_folder_is_the_problem_s(folder, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    ready = anyio.run(PatchesProposer(Path("found")).open, Bench(tmp_path))
    assert ask(ready).candidates[0].name == "a.diff"
    PatchesProposer(Path("found")).preflight(PreflightContext(tmp_path))


def test_an_empty_folder_is_reported_before_anything_starts(folder, tmp_path):
    for proposer, told in (
        (PatchesProposer(tmp_path / "nowhere"), "nowhere can't be read: No such file"),
        (PatchesProposer(folder / "a.diff"), "a.diff can't be read: Not a directory"),
        (PatchesProposer(folder, glob="*.txt"), r"nothing that fits '\*.txt' in"),
        (PatchesProposer(folder / "b-folder"), "no diffs or folders in"),
    ):
        with pytest.raises(StudyError, match=told):
            proposer.preflight(PreflightContext(Path()))
        with pytest.raises(StudyError, match=told):
            anyio.run(proposer.open, Bench(tmp_path))


def test_options():
    mistakes = []
    made = build_record(PatchesProposer, {"folder": "some/where"}, (), mistakes)
    assert (mistakes, made.folder, made.name) == ([], Path("some/where"), "patches")
    build_record(PatchesProposer, {"folder": "x", "glob": "../*.diff"}, (), mistakes)
    build_record(PatchesProposer, {}, (), mistakes)
    assert ["pattern of names" in str(mistakes[0]), str(mistakes[1])] == [
        True,
        "'folder' is missing",
    ]
    made.preflight(PreflightContext(max_cost_usd=0.0))


NAMES = st.sets(st.text("abAB019-_.", min_size=1, max_size=6), min_size=1, max_size=6)


@given(names=NAMES)
def test_lines_and_candidates_are_one_to_one(tmp_path_factory, names):
    folder = tmp_path_factory.mktemp("patches")
    files = sorted(f"x{name}.diff" for name in names)
    for name in files:
        (folder / name).write_text(name)

    async def ask_for_each():
        proposer = PatchesProposer(folder)
        requests = [Request(RequestKind.INITIAL, line, 0) for line in range(len(files))]
        return [await proposer.propose(BRIEF, request) for request in requests]

    found = anyio.run(ask_for_each)
    assert [reply.candidates[0].name for reply in found] == files

"""Recorded runs: an arena for an unchanged base replays them; any change makes it run anew."""

import os
import sys
import time
from dataclasses import replace

import anyio
import pytest
from repository_kit import make_repository, write_files

from fairtrial.arena import (
    ArenaSettings,
    Candidate,
    Check,
    CodeProblem,
    FileState,
    Verdict,
    base_runs as recordings,
    evaluate_candidates_sync,
    open_arena,
)
from fairtrial.arena.checks import command_check as commands, pytest_check as tests
from fairtrial.arena.slots.pool_folders import remove_orphaned_pools
from fairtrial.core import StudyError
from fairtrial.sandbox import Limits
from fairtrial.sandbox.selection import FULL_SANDBOXES, try_sandbox

pytestmark = pytest.mark.skipif(
    all(try_sandbox(sandbox) for sandbox in FULL_SANDBOXES), reason="no full sandbox works here"
)
MODULE = "def double(x):\n    return 2 * x\n"
WRONG = "def double(x):\n    return 3 * x\n"
TEST = "from mod import double\n\ndef test_double():\n    assert double(2) == 4\n"
FILES = {"mod.py": MODULE, "test_mod.py": TEST, "look.py": "import mod\nprint(mod.double(2))\n"}
LOOK = Check(command=("{python}", "look.py"), compare="output", timeout_s=60)


@pytest.fixture
def scene(tmp_path, monkeypatch):
    return Scene(tmp_path, monkeypatch)


class Scene:
    """A small repository, and a count of the commands that run on the base while it is opened."""

    def __init__(self, tmp_path, monkeypatch):
        monkeypatch.delenv(recordings.NO_CACHE_VARIABLE)
        monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
        for kind in (commands, tests):
            monkeypatch.setattr(kind, "BASE_RUNS", 2)
        (tmp_path / "locks").mkdir()
        self.top = make_repository(tmp_path / "repo", FILES)
        self.folder = tmp_path / "home" / recordings.BASE_RUNS
        self.problem = CodeProblem(
            problem_id="double",
            check=(LOOK,),
            python=sys.executable,
            editable=("mod.py",),
            folder=self.top,
        )
        self.settings = ArenaSettings(timing="none", lock_folder=tmp_path / "locks", warm=False)
        self.ran = 0
        real = recordings.BaseRuns.run
        scene = self

        async def run(runs, sandbox, command):
            class Counting:
                name = sandbox.name

                async def run(self, command):
                    scene.ran += 1
                    return await sandbox.run(command)

            return await real(runs, Counting(), command)

        monkeypatch.setattr(recordings.BaseRuns, "run", run)

    def open(self, **changes):
        """Open an arena; return how many of the base's commands ran for that."""
        before = self.ran

        async def run():
            async with open_arena(replace(self.problem, **changes), settings=self.settings):
                pass

        anyio.run(run)
        return self.ran - before

    @property
    def files(self):
        return list(self.folder.iterdir())


def test_an_unchanged_base_is_not_run_again(scene):
    assert [scene.open(), scene.open(), scene.open()] == [2, 0, 0]


def test_replayed_runs_lead_to_the_same_verdicts(scene):
    candidates = [
        Candidate("right", files={"mod.py": FileState(b"def double(x):\n    return x + x\n")}),
        Candidate("wrong", files={"mod.py": FileState(WRONG.encode())}),
    ]
    for check in (LOOK, Check(command=("{python}", "-m", "pytest", "-q", "test_mod.py"))):
        problem = replace(scene.problem, check=(check,))
        for _ in range(2):
            settings = replace(scene.settings, audit=False)
            found = evaluate_candidates_sync(problem, candidates, settings=settings).judgements
            assert [each.verdict for each in found] == [Verdict.PASSED, Verdict.REJECTED]
    assert scene.ran == 4


def test_a_changed_tree_is_run_anew(scene):
    scene.open()
    write_files(scene.top, {"mod.py": MODULE + "\n"})
    assert scene.open() == 2


def test_a_base_that_was_broken_meanwhile_is_noticed(scene):
    scene.open()
    write_files(scene.top, {"look.py": "raise SystemExit(1)\n"})
    with pytest.raises(StudyError, match="unchanged base"):
        scene.open()


def test_a_changed_problem_is_run_anew(scene):
    scene.open()
    assert scene.open(env={"LEVEL": "2"}) == 2
    assert scene.open(check=(replace(LOOK, timeout_s=59),)) == 2


def test_a_changed_package_is_run_anew(scene, monkeypatch):
    """A file that the runs imported, wherever it is."""
    library = scene.top.parent / "library.py"
    library.write_text("VALUE = 1\n")
    runs = recordings.BaseRuns(scene.top.parent / "recording.json")
    runs.save([str(library)])
    assert recordings._read(runs.file) is not None
    library.write_text("VALUE = 2\n")
    assert recordings._read(runs.file) is None


def test_included_files_count(scene):
    write_files(scene.top, {".gitignore": "data/\n", "data/table": "1"})
    assert [scene.open(include=("data",)), scene.open(include=("data",))] == [2, 0]
    write_files(scene.top, {"data/table": "2"})
    assert scene.open(include=("data",)) == 2


@pytest.mark.parametrize("damage", ["", "x", "cut", "swapped"])
def test_damaged_recordings_are_ignored(scene, damage):
    scene.open()
    [file] = scene.files
    text = file.read_text()
    swapped = text.replace('"exit_code": 0', '"exit_code": 1')
    file.write_text({"cut": text[:-9], "swapped": swapped}.get(damage, damage))
    assert [scene.open(), scene.open()] == [2, 0]


def test_old_recordings_expire(scene):
    scene.open()
    [file] = scene.files
    old = time.time() - recordings.MAX_AGE_S - 60
    os.utime(file, (old, old))
    assert scene.open() == 2


def test_nothing_is_recorded_where_runs_are_not_isolated_or_not_repeatable(scene, monkeypatch):
    assert scene.open(limits=Limits(network=True)) == 2
    scene.settings = replace(scene.settings, unsandboxed=True)
    scene.open(sandbox="plain")
    assert not scene.folder.exists() or scene.files == []


def test_users_can_do_without(scene, monkeypatch):
    scene.open()
    usual = scene.settings
    scene.settings = replace(usual, cache=False)
    assert scene.open() == 2
    scene.settings = usual
    monkeypatch.setenv(recordings.NO_CACHE_VARIABLE, "1")
    assert scene.open() == 2


def test_tests_that_come_and_go_are_not_recorded(scene, monkeypatch):
    real = tests.build_baseline
    flaky = ("test_mod.py::test_other",)
    monkeypatch.setattr(tests, "build_baseline", lambda runs: replace(real(runs), unstable=flaky))
    check = Check(command=("{python}", "-m", "pytest", "-q", "test_mod.py"))
    assert [scene.open(check=(check,)), scene.open(check=(check,))] == [2, 2]
    assert scene.files == []


def test_the_folder_stays_small(scene, monkeypatch):
    monkeypatch.setattr(recordings, "MAX_FILES", 2)
    for level in range(4):
        scene.open(env={"LEVEL": str(level)})
    assert len(scene.files) <= 3
    assert scene.open(env={"LEVEL": "3"}) == 0
    assert remove_orphaned_pools(with_kept=True) == ([scene.folder], [])
    assert scene.files == []

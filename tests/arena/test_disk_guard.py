"""A full disk: who is tried again, who is to blame, and that it ends.

The disk is full for as long as somebody's `filler` lies in a slot; all else is real.
"""

from dataclasses import replace

import anyio
import pytest
from arena_kit import Watched, arena_of, whole
from repository_kit import make_repository

import fairtrial.arena.disk_guard as disk_guard_module
import fairtrial.arena.resources as resources_module
from fairtrial.arena import Bench, Changes, FileState, Reason, Rejection, Verdict
from fairtrial.arena.evaluation import judge_all
from fairtrial.arena.slots.threads import NoRoomError

NO = Rejection(Reason.DIFFERENT, "no")
HOG, HONEST, WRONG = "HOG = 1\n", "HONEST = 1\n", "WRONG = 1\n"
PATIENCE_S = 60.0
SELDOM_S = 3600.0


class Disk:
    """The disk as the arena sees it.

    looked: set when somebody has seen that it is full
    """

    def __init__(self):
        self.looked = anyio.Event()

    def has_room(self, folder):
        is_full = any(folder.glob("*/filler"))
        if is_full:
            self.looked.set()
        return not is_full


@pytest.fixture
def top(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    return make_repository(tmp_path / "repo", {"src/mod.py": "N = 0\n", "src/other.py": "X = 1\n"})


@pytest.fixture
def disk(monkeypatch):
    disk = Disk()
    monkeypatch.setattr(disk_guard_module, "has_room", lambda folder: disk.has_room(folder))
    return disk


@pytest.fixture
def seldom(monkeypatch):
    """Nobody looks but at the ends of checks."""
    monkeypatch.setattr(resources_module, "POLL_S", SELDOM_S)


def run_soon(work):
    async def run():
        with anyio.fail_after(PATIENCE_S):
            return await work()

    return anyio.run(run)


class Pair:
    """A hog that fills the disk, and a neighbour that fails for it when the hog is long gone."""

    def __init__(self, disk, *, clears_up=False):
        self.disk, self.clears_up = disk, clears_up
        self.ready, self.gone, self.tries = anyio.Event(), anyio.Event(), 0

    async def check(self, text, stage):
        if text == HOG:
            await self.ready.wait()
            (stage.slot / "filler").touch()
            if self.clears_up:
                await self.disk.looked.wait()
                (stage.slot / "filler").unlink()
            return NO
        self.tries += 1
        if self.tries > 1:
            return None
        self.ready.set()
        await self.gone.wait()
        assert self.disk.has_room(stage.slot.parent)
        return NO

    async def judge(self, arena):
        """(the hog's, the neighbour's)"""
        found = {}

        async def judge(name, text):
            found[name] = await arena.judge(whole(name, text))

        async def see_it_go():
            while not self.ready.is_set() or not self.disk.looked.is_set():
                await anyio.sleep(0)
            while any(arena.resources.disk_guard.folder.glob("*/filler")):
                await anyio.sleep(0)
            self.gone.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(see_it_go)
            tasks.start_soon(judge, "hog", HOG)
            tasks.start_soon(judge, "honest", HONEST)
        return found["hog"], found["honest"]


def test_a_candidate_that_fails_because_of_an_ended_neighbor_is_repeated(top, disk, seldom):
    async def work():
        pair = Pair(disk)
        async with arena_of(top, Watched(pair.check)) as (arena, _):
            return await pair.judge(arena), pair.tries

    (hog, honest), tries = run_soon(work)
    assert (honest.verdict, tries) == (Verdict.PASSED, 2)
    assert (hog.verdict, hog.rejection) == (Verdict.REJECTED, NO), "it filled it alone, too"


def test_a_neighbour_that_clears_up_before_its_check_ends_is_seen(top, disk, monkeypatch):
    monkeypatch.setattr(resources_module, "POLL_S", 0.001)

    async def work():
        pair = Pair(disk, clears_up=True)
        async with arena_of(top, Watched(pair.check)) as (arena, _):
            return await pair.judge(arena)

    assert run_soon(work)[1].verdict == Verdict.PASSED


def test_hogs_that_meet_are_each_tried_alone_and_once_more(top, disk, seldom):
    async def work():
        met, beside = anyio.Event(), []

        async def fill(text, stage):
            beside.append((text, check.at_once))
            if len(beside) == 2:
                met.set()
            await met.wait()
            (stage.slot / "filler").touch()
            await anyio.wait_all_tasks_blocked()
            return NO

        check = Watched(fill)
        async with arena_of(top, check) as (arena, _):
            hogs = [whole("a", "A = 1\n"), whole("b", "B = 1\n")]
            return await judge_all(arena, hogs), beside

    judged, beside = run_soon(work)
    assert [judgement.verdict for judgement in judged] == [Verdict.REJECTED] * 2
    assert [count for _, count in beside[2:]] == [1, 1]
    assert sorted(text for text, _ in beside[2:]) == ["A = 1\n", "B = 1\n"]


def test_a_candidate_that_waited_for_a_slot_meanwhile_is_not_repeated(top, disk, seldom):
    async def fill(text, stage):
        if text == HOG:
            (stage.slot / "filler").touch()
        return NO

    async def work():
        check = Watched(fill)
        async with arena_of(top, check, slots=1, cores=1) as (arena, _):
            judged = await judge_all(arena, [whole("hog", HOG), whole("wrong", WRONG)])
        return judged, [text for _, text in check.seen]

    judged, seen = run_soon(work)
    assert [judgement.verdict for judgement in judged] == [Verdict.REJECTED] * 2
    assert sorted(seen) == sorted([HOG, HOG, WRONG])


def test_a_disk_that_another_program_keeps_full_gives_no_verdict(top, disk, seldom):
    async def work():
        async def fail(text, stage):
            return NO

        check = Watched(fail)
        async with arena_of(top, check) as (arena, resources):
            other = resources.disk_guard.folder / "of somebody else"
            other.mkdir()
            (other / "filler").touch()
            with pytest.raises(NoRoomError):
                await arena.judge(whole("wrong", WRONG))
            (other / "filler").unlink()
            return await arena.judge(whole("wrong", WRONG)), len(check.seen)

    judged, tries = run_soon(work)
    assert (judged.rejection, tries) == (NO, 2)


FILLS = ("sh", "-c", "if grep -q HOG src/mod.py; then touch filler; exit 1; fi")


def test_a_build_that_fills_the_disk_is_rejected_as_often_as_it_comes(top, disk):
    async def work():
        async def hold(text, stage):
            return None

        async with arena_of(top, Watched(hold), build=FILLS) as (arena, _):
            hogs = [await arena.judge(whole(f"{n}", f"HOG = {n}\n")) for n in range(3)]
            return hogs, await arena.judge(whole("honest", HONEST))

    hogs, honest = run_soon(work)
    assert [hog.rejection.reason for hog in hogs] == [Reason.BUILD] * 3
    assert honest.verdict == Verdict.PASSED


def test_a_check_that_breaks_on_the_disk_that_it_fills_leaves_nothing_there(top, disk):
    async def fall(text, stage):
        (stage.slot / "filler").touch()
        raise OSError("nothing can be read")

    async def work():
        async with arena_of(top, Watched(fall)) as (arena, resources):
            return await arena.judge(whole("hog", HOG)), disk.has_room(resources.disk_guard.folder)

    judged, has_room = run_soon(work)
    assert (judged.verdict, has_room) == (Verdict.INCONCLUSIVE, True)


@pytest.mark.parametrize("code", [0, 1])
def test_what_is_staged_for_the_clock_while_a_neighbour_fills_the_disk_is_staged_again(
    top, disk, seldom, tmp_path, code
):
    log, seen = tmp_path / "built", tmp_path / "seen"
    # On a full disk it ends with `code` (0: who knows what is missing), when there is room again.
    build = f"""echo >> {log}
    for each in ../*/filler; do
        [ -e "$each" ] || continue
        touch {seen}
        while [ -e "$each" ]; do sleep 0.01; done
        exit {code}
    done"""
    changes = Changes({"src/other.py": FileState(b"X = 2\n")}, "digest")

    async def work():
        begun = anyio.Event()

        async def fill(text, stage):
            (stage.slot / "filler").touch()
            begun.set()
            while not seen.exists():
                await anyio.sleep(0.001)
            (stage.slot / "filler").unlink()

        async with arena_of(top, Watched(fill), slots=3) as (arena, resources):
            problem = replace(resources.problem, build=("sh", "-c", build))
            ready = replace(resources, problem=problem)
            async with resources.pool.acquire() as base, anyio.create_task_group() as tasks:
                tasks.start_soon(arena.judge, whole("hog", HOG))
                await begun.wait()
                return await Bench(ready, base, (), ()).run(changes, "x", 0, 0, 0.0)

    batch = run_soon(work)
    assert batch.rejection is None
    assert len(log.read_text().splitlines()) == 2


def test_a_build_that_fills_the_disk_for_the_clock_is_rejected(top, disk):
    changes = Changes({"src/mod.py": FileState(HOG.encode())}, "digest")

    async def work():
        async with arena_of(top, slots=2, build=FILLS) as (_, resources):
            async with resources.pool.acquire() as base:
                batch = await Bench(resources, base, (), ()).run(changes, "x", 0, 0, 0.0)
            return batch, disk.has_room(resources.disk_guard.folder)

    batch, has_room = run_soon(work)
    assert (batch.rejection.reason, has_room) == (Reason.BUILD, True)

"""The arena itself: who gets a slot, who inherits a verdict, what one candidate costs the others.

Slots, git and locks are real; the checks are functions of the test.
"""

from dataclasses import replace
from types import SimpleNamespace

import anyio
import pytest
from arena_kit import Watched, arena_of, whole
from repository_kit import make_repository

from fairtrial.arena import Basis, Candidate, Changes, FileState, Reason, Rejection, Verdict
from fairtrial.arena.evaluation import judge_all
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.core import LabError
from fairtrial.optimize.study_events import describe_unread

MODULE = "def add(a, b):\n    return a + b\n"
NO = Rejection(Reason.DIFFERENT, "no")
NOBODY = -1  # no process: to somebody else, we are somebody else


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))


@pytest.fixture
def top(tmp_path):
    files = {"src/mod.py": MODULE, "src/other.py": "X = 1\n", "tests/test_mod.py": "# tests\n"}
    return make_repository(tmp_path / "repo", files)


async def hold(text, stage):
    return NO if "wrong" in text else None


def test_every_candidate_gets_a_verdict_in_input_order_and_a_check_sees_its_own_files(top):
    # 13, 17, and the trap of a path that was frozen before
    check = Watched(hold)
    given = [whole(f"c{n}", f"N = {n}\n" + ("'wrong'\n" if n % 3 == 0 else "")) for n in range(12)]
    given[4] = Candidate("nonsense", diff=b"not a diff at all\n")

    async def run():
        async with arena_of(top, check, slots=3) as (arena, _):
            return await judge_all(arena, given)

    judged = anyio.run(run)
    assert [judgement.name for judgement in judged] == [entry.name for entry in given]
    for number, each in enumerate(judged):
        wrong = number % 3 == 0 or number == 4
        assert each.verdict == (Verdict.REJECTED if wrong else Verdict.PASSED), each
    assert judged[4].rejection.reason == Reason.UNUSABLE
    assert sorted(text for _, text in check.seen) == sorted(
        given[n].files["src/mod.py"].content.decode() for n in range(12) if n != 4
    )
    assert judged[1].basis == Basis.COMPARED
    assert judged[1].check_s == 0.5
    assert judged[1].peak_rss_mb == 10.0


def test_an_empty_list_gives_an_empty_result(top):  # 17
    async def run():
        async with arena_of(top, Watched(hold)) as (arena, _):
            return await judge_all(arena, [])

    assert anyio.run(run) == ()


def test_at_most_one_check_for_each_core(top):  # 14
    async def linger(text, stage):
        with anyio.move_on_after(60):  # until there is another, and a moment longer
            while check.most_at_once < 2:
                await anyio.sleep(0.001)
        await anyio.sleep(0.02)

    check = Watched(linger)

    async def run():
        async with arena_of(top, check, slots=5, cores=2) as (arena, _):
            await judge_all(arena, [whole(f"c{n}", f"N = {n}\n") for n in range(8)])

    anyio.run(run)
    assert check.most_at_once == 2


def test_a_slow_candidate_does_not_delay_others_and_later_ones_start_at_once(top):  # 16: no barrier
    order = []

    async def run():
        gate = anyio.Event()

        async def judge(text, stage):
            if "slow" in text:
                await gate.wait()

        async with (
            arena_of(top, Watched(judge), slots=2) as (arena, _),
            anyio.create_task_group() as tasks,
        ):

            async def enter(candidate):
                order.append((await arena.judge(candidate)).name)

            tasks.start_soon(enter, whole("slow", "'slow'\n"))
            for number in range(5):  # each enters when the one before it has its verdict
                await enter(whole(f"quick{number}", f"N = {number}\n"))
            gate.set()

    anyio.run(run)
    assert order == [*(f"quick{n}" for n in range(5)), "slow"]


def test_equal_candidates_are_judged_once_and_the_first_in_input_order_leads(top):  # 23
    check = Watched(hold)
    spread = "def add(left, right):\n    return (left +\n            right)  # the same\n"
    plain = "def add(left, right):\n    return left + right\n"
    given = [
        whole("first", plain),
        whole("again", spread),
        whole("nothing", MODULE.replace("return", "# a remark\n    return")),
        whole("wrong", "wrong = 1\n"),
        whole("wrong again", "wrong =   1\n"),
    ]

    async def run():
        async with arena_of(top, check) as (arena, _):
            return await judge_all(arena, given)

    first, again, nothing, wrong, twice = anyio.run(run)
    assert len(check.seen) == 2
    assert (first.duplicate_of, again.duplicate_of) == (None, "first")
    assert again.verdict == Verdict.PASSED
    assert again.digest == first.digest
    assert again.check_s == 0.0
    assert (nothing.duplicate_of, nothing.verdict, nothing.digest) == ("base", Verdict.PASSED, "")
    assert (twice.duplicate_of, twice.rejection) == ("wrong", wrong.rejection)


def test_an_evaluator_that_raises_costs_that_candidate_only_and_is_not_its_fault(top):  # 17
    async def judge(text, stage):
        if "raise" in text:
            raise ZeroDivisionError("oh")

    given = [whole("a", "A = 1\n"), whole("bad", "'raise'\n"), whole("b", "B = 1\n")]
    twin = whole("bad twin", "'raise' \n")

    async def run():
        async with arena_of(top, Watched(judge)) as (arena, _):
            return await judge_all(arena, [*given, twin])

    a, bad, b, bad_twin = anyio.run(run)
    assert (a.verdict, b.verdict) == (Verdict.PASSED, Verdict.PASSED)
    for item in (bad, bad_twin):  # the twin is tried itself: nothing was found out before
        assert item.verdict == Verdict.INCONCLUSIVE
        assert item.rejection.reason == Reason.EVALUATOR
        assert "ZeroDivisionError: oh" in item.rejection.message
        assert item.duplicate_of is None


def test_files_that_no_check_imported_are_named(top):  # 13
    both = Candidate(
        "both", files={**whole("", "N = 2\n").files, **whole("", "X = 2\n", "src/other.py").files}
    )

    async def run():
        async with arena_of(top, Watched(hold)) as (arena, _):
            return await arena.judge(both)

    judged = anyio.run(run)
    assert judged.verdict == Verdict.PASSED
    assert judged.not_exercised == ("src/other.py",)


@pytest.mark.parametrize("restores", [False, True])
def test_changing_files_of_the_base_while_a_check_runs_is_tampering(top, restores):  # 19
    async def judge(text, stage):
        if "tamper" in text:
            test = stage.slot / "tests" / "test_mod.py"
            before = test.read_text()
            test.write_text("# nothing is tested\n")
            if restores:
                test.write_text(before)

    async def run():
        async with arena_of(top, Watched(judge)) as (arena, _):
            given = [whole("fair", "F = 1\n"), whole("foul", "'tamper'\n")]
            return await judge_all(arena, given)

    fair, foul = anyio.run(run)
    assert fair.verdict == Verdict.PASSED
    assert foul.rejection.reason == Reason.TAMPERING
    assert "tests/test_mod.py" in foul.rejection.message


def test_what_the_bases_own_checks_change_is_no_tampering(top):
    async def judge(text, stage):
        (stage.slot / "tests" / "test_mod.py").write_text("# written by the tests themselves\n")

    async def run():
        check = Watched(judge)
        async with arena_of(top, check) as (arena, resources):
            async with resources() as stage:
                await check.run(stage)
            return await arena.judge(whole("fair", "F = 1\n"))

    assert anyio.run(run).verdict == Verdict.PASSED


def test_the_second_check_starts_from_what_the_candidate_is_and_not_from_what_the_first_left(top):
    async def litter(text, stage):
        (stage.slot / "src" / "mod.py").write_text("changed by the first check\n")
        (stage.slot / "left.txt").write_text("left")

    seen = []

    async def look(text, stage):
        seen.append((text, (stage.slot / "left.txt").exists()))

    async def run():
        first, second = Watched(litter), Watched(look, "check[1]")
        async with arena_of(top, first, second) as (arena, resources):
            resources.disturbed.add("src/mod.py")  # so that it isn't rejected for it
            await arena.judge(whole("c", "C = 1\n"))

    anyio.run(run)
    assert seen == [("C = 1\n", False)]


def test_timing_stops_a_long_check_which_is_then_done_again_and_not_rejected(top):  # 15
    async def run():
        tries, begun, timed = [], anyio.Event(), anyio.Event()

        async def judge(text, stage):
            tries.append((stage.slot / "src" / "mod.py").read_text())
            begun.set()
            if not timed.is_set():
                await anyio.sleep_forever()

        async with arena_of(top, Watched(judge)) as (arena, resources):

            async def time_something():
                await begun.wait()
                async with resources.lock.exclusive(drain_max_s=0.0):
                    timed.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(time_something)
                return await arena.judge(whole("long", "L = 1\n")), tries

    judged, tries = anyio.run(run)
    assert judged.verdict == Verdict.PASSED
    assert tries == ["L = 1\n"] * 2


def test_a_cancelled_batch_leaves_all_slots_free(top):  # 9
    async def run():
        begun = []

        async def judge(text, stage):
            begun.append(text)
            if "later" not in text:
                await anyio.sleep_forever()

        async with arena_of(top, Watched(judge), slots=2) as (arena, resources):
            async with anyio.create_task_group() as tasks:
                for number in range(4):
                    tasks.start_soon(arena.judge, whole(f"c{number}", f"N = {number}\n"))
                while len(begun) < 2:
                    await anyio.sleep(0.001)
                tasks.cancel_scope.cancel()
            with anyio.fail_after(60):
                async with resources.lease(), resources.lease():
                    pass
                return await arena.judge(whole("later", "'later'\n"))

    assert anyio.run(run).verdict == Verdict.PASSED


def test_a_candidate_whose_twin_was_cancelled_is_judged_itself(top):  # 23 under cancellation
    async def run():
        begun = anyio.Event()
        tries = []

        async def judge(text, stage):
            tries.append(text)
            begun.set()
            if len(tries) == 1:
                await anyio.sleep_forever()

        async with arena_of(top, Watched(judge)) as (arena, _):
            verdicts = []
            twin = whole("twin", "T = 1 # twin\n")
            changes = await arena.resolve(twin)  # which isn't waited for below

            async def judge_twin():
                verdicts.append(await arena.judge(twin, changes))

            async with anyio.create_task_group() as others, anyio.create_task_group() as tasks:
                tasks.start_soon(arena.judge, whole("first", "T = 1\n"))
                await begun.wait()
                others.start_soon(judge_twin)
                await anyio.wait_all_tasks_blocked()  # it waits for the first one's verdict
                tasks.cancel_scope.cancel()
            return verdicts, tries

    verdicts, tries = anyio.run(run)
    assert verdicts[0].verdict == Verdict.PASSED
    assert verdicts[0].duplicate_of is None
    assert len(tries) == 2


def test_a_candidate_that_fails_skips_later_checks_and_the_time_of_all_is_reported(top):  # 14
    async def pass_on(text, stage):
        return None

    first, second, third = Watched(pass_on), Watched(hold, "check[1]"), Watched(pass_on, "check[2]")
    second.basis, third.basis = Basis.TESTS, Basis.EXIT_STATUS
    second.peak_rss_mb = 30.0
    wrong = {**whole("", "'wrong'\n").files, **whole("", "X = 2\n", "src/other.py").files}

    async def run():
        async with arena_of(top, first, second, third) as (arena, _):
            assert arena.basis == Basis.COMPARED  # the strongest of those that had to hold
            return await judge_all(
                arena, [whole("fair", "F = 1\n"), Candidate("foul", files=wrong)]
            )

    fair, foul = anyio.run(run)
    assert [len(check.seen) for check in (first, second, third)] == [2, 2, 1]
    assert (fair.check_s, fair.cpu_s, fair.peak_rss_mb) == (1.5, 0.75, 30.0)
    assert (foul.check_s, foul.rejection) == (1.0, NO)
    assert foul.not_exercised == ()  # nobody knows what the checks it didn't get to would import


def test_a_file_that_goes_is_not_one_that_was_not_exercised(top):  # 13, 24
    diff = b"--- a/src/other.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-X = 1\n"

    async def run():
        async with arena_of(top, Watched(hold)) as (arena, _):
            return await arena.judge(Candidate("removes", diff=diff))

    judged = anyio.run(run)
    assert (judged.verdict, judged.not_exercised) == (Verdict.PASSED, ())


def test_a_check_may_continue_for_as_long_as_timing_lets_it(top, monkeypatch):  # 15
    import fairtrial.arena.resources as module

    monkeypatch.setattr(module, "POLL_S", 0.001)

    async def run():
        tries, begun = [], anyio.Event()

        async with arena_of(top, check := Watched(None)) as (arena, resources):

            async def judge(text, stage):
                tries.append(text)
                begun.set()
                while len(tries) == 1 and resources.lock.find_timing_process(NOBODY) is None:
                    await anyio.sleep(0.001)
                await anyio.sleep(0.05)  # it is looked again and again whether it may go on

            async def time_something():
                await begun.wait()
                async with resources.lock.exclusive(drain_max_s=600.0):
                    pass

            check.judge = judge

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(time_something)
                return await arena.judge(whole("long", "L = 1\n")), tries

    judged, tries = anyio.run(run)
    assert judged.verdict == Verdict.PASSED
    assert len(tries) == 1


@pytest.mark.parametrize("error", [RecursionError, MemoryError, ValueError, OSError])
def test_a_candidate_that_makes_reading_it_fail_costs_that_candidate_only(
    top, monkeypatch, error
):  # 17
    import fairtrial.arena.arena as module

    resolve = module.resolve

    async def stumble(candidate, *rest):
        if candidate.name == "odd":
            raise error("stumbled")
        return await resolve(candidate, *rest)

    monkeypatch.setattr(module, "resolve", stumble)

    async def run():
        async with arena_of(top, Watched(hold)) as (arena, _):
            return await judge_all(arena, [whole("odd", "O = 1\n"), whole("even", "E = 1\n")])

    odd, even = anyio.run(run)
    assert even.verdict == Verdict.PASSED
    assert (odd.verdict, odd.rejection.reason) == (Verdict.INCONCLUSIVE, Reason.EVALUATOR)
    assert "stumbled" in odd.rejection.message


@pytest.mark.parametrize("text", ["'wrong'\n", "'raise'\n"])
def test_a_failure_on_a_full_disk_is_no_verdict(top, monkeypatch, text):
    import fairtrial.arena.disk_guard as module

    async def judge(text, stage):
        if "raise" in text:
            raise LabError("can't be written")
        return await hold(text, stage)

    monkeypatch.setattr(module, "has_room", lambda folder: False)
    bad, good = whole("bad", text), whole("good", "N = 1\n")

    async def run():
        async with arena_of(top, Watched(judge)) as (arena, _):
            with pytest.raises(
                NoRoomError, match=r"no room left for working copies in .*make room"
            ):
                await arena.judge(bad)
            monkeypatch.setattr(module, "has_room", lambda folder: not arena.is_full)
            arena.is_full = True
            at_once = await judge_all(arena, [bad, good])
            arena.is_full = False
            return at_once, await arena.judge(bad)

    (unclear, passed), again = anyio.run(run)
    assert (unclear.verdict, unclear.rejection.reason) == (Verdict.INCONCLUSIVE, Reason.EVALUATOR)
    assert "no room left" in unclear.rejection.message
    assert passed.verdict == Verdict.PASSED, "what could be judged was"
    assert "no room" not in again.rejection.message, "it is judged again once there is room"


def test_reading_a_candidate_on_a_full_disk_is_no_verdict(top, monkeypatch):
    import fairtrial.arena.disk_guard as module

    monkeypatch.setattr(module, "has_room", lambda folder: False)

    async def run():
        async with arena_of(top, Watched(hold)) as (arena, _):
            unread = Rejection(Reason.EVALUATOR, "it could not be judged: no space")
            with pytest.raises(NoRoomError):
                await arena.judge(whole("unread", "N = 1\n"), unread)
            unusable = Rejection(Reason.UNUSABLE, "the diff doesn't apply")
            return await arena.judge(whole("unusable", "N = 1\n"), unusable)

    assert anyio.run(run).verdict == Verdict.REJECTED


def test_tests_can_be_tried_outside_of_the_sandbox(top):  # 20: which pass only there
    async def run():
        async with arena_of(top, Watched(hold)) as (_, resources):
            inside = replace(resources, sandbox=SimpleNamespace(name="other", relocates=True))
            async with inside() as stage, inside(sandboxed=False) as free:
                return stage, free

    stage, free = anyio.run(run)
    assert (stage.sandbox.name, free.sandbox.name) == ("other", "plain")
    assert stage.seen == top
    assert free.seen == free.slot != stage.slot


def test_where_no_check_can_tell_what_it_imported_nothing_is_called_not_exercised(top):  # 13
    class Blind(Watched):
        async def run(self, stage):
            return replace(await super().run(stage), loaded=frozenset())

    async def judge(check):
        async with arena_of(top, check) as (arena, _):
            return await arena.judge(whole("other", "X = 2\n", "src/other.py"))

    assert anyio.run(judge, Watched(hold)).not_exercised == ("src/other.py",)
    assert anyio.run(judge, Blind(hold)).not_exercised == ()


def test_a_candidate_that_can_not_be_written_into_a_slot_is_unusable(top):  # 4
    changes = Changes({"../outside.py": FileState(b"X = 1\n")}, "some digest")

    async def run():
        async with arena_of(top, Watched(hold)) as (arena, _):
            return await arena.judge(Candidate("out", files={}), changes)

    judged = anyio.run(run)
    assert (judged.verdict, judged.rejection.reason) == (Verdict.REJECTED, Reason.UNUSABLE)


def test_verdicts_do_not_depend_on_how_many_are_under_way_at_once(top):
    # the trap: parallelism changing the result
    texts = [f"N = {n % 4}  # {n}\n" + ("'wrong'\n" if n % 4 == 3 else "") for n in range(10)]

    async def linger(text, stage):
        await anyio.sleep(0.02 if "N = 0" in text else 0.0)
        return await hold(text, stage)

    async def run(slots):
        async with arena_of(top, Watched(linger), slots=slots, cores=slots) as (arena, _):
            given = [whole(f"c{n}", text) for n, text in enumerate(texts)]
            return await judge_all(arena, given)

    one, many = anyio.run(run, 1), anyio.run(run, 4)
    assert one == many
    assert [item.duplicate_of for item in one] == [None] * 4 + ["c0", "c1", "c2", "c3", "c0", "c1"]


def test_texts_in_another_encoding_are_listed_since_they_are_not_shown(tmp_path):
    files = {
        "src/mod.py": "N = 0\n",
        "src/latin.py": "# caf\u00e9\n".encode("latin-1"),
        "src/data.py": b"\0\xff",
        "other.py": "# caf\u00e9\n".encode("latin-1"),
    }

    async def look():
        async with arena_of(make_repository(tmp_path / "repo", files)) as (arena, _):
            return await arena.sources(), await arena.list_unread()

    sources, unread = anyio.run(look)
    assert (sources, unread) == ({"src/mod.py": "N = 0\n"}, ["src/latin.py"])
    assert describe_unread(unread) == [
        "not shown to the proposer, since it isn't UTF-8: src/latin.py"
    ]
    assert describe_unread([f"{n}.py" for n in range(7)])[0].endswith("4.py and 2 more")

"""Whatever happens to an evaluation, nothing of it is left, and no candidate is blamed for it.

Numbers are the spec's: 7-9, 15, 17. FAIRTRIAL_FAULTS=200 tries that many instants.
"""

import gc
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from arena_fault_kit import (
    LIBRARY,
    MODULE,
    PATIENCE_S,
    RIGHT,
    SLOW_SERVER,
    SOON_S,
    WAITS,
    WORKING,
    Nursery,
    Site,
    list_below,
)
from repository_kit import fingerprint, write_files

from fairtrial import load_problem, open_arena
from fairtrial.arena import ArenaSettings, read_candidate
from fairtrial.arena.slots.threads import has_room
from fairtrial.sandbox import HostLock

needs_sandbox = pytest.mark.skipif(not WORKING, reason="no full sandbox works here")
pytestmark = [pytest.mark.slow, needs_sandbox]
COUNT = int(os.environ.get("FAIRTRIAL_FAULTS", "22"))
JUDGED = {"right": "passed", "wrong": "rejected"}
# Whoever looks for it finds it at work: by itself it would be gone before that, now and then.
SLOW_MAKER = "import time\n\ndef numbers(rng):\n    time.sleep(1000)\n"


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as nursery:
        yield nursery


@pytest.fixture
def site(tmp_path, monkeypatch, nursery):
    site = Site(tmp_path, nursery)
    site.strangers = {pid for pid, _ in list_below(os.getpid())}
    for name, value in site.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", None)
    return site


def assert_nothing_left(site, running):
    """No file, group or lock; `running` has no process any more."""

    async def take():
        with anyio.fail_after(PATIENCE_S):
            async with HostLock(site.locks).exclusive():
                pass

    assert site.files() == []
    assert running.groups() == []
    anyio.run(take)


# -- signals at any time --


def has_pool(*parts):
    return lambda run: (pool := run.pool()) is not None and pool.joinpath(*parts).exists()


def let_go(run):
    run.let_go()
    return run.begun()


STAGES = {
    "start": lambda run: True,
    "snapshot": has_pool(),
    "checkout": has_pool("base"),
    "slots": has_pool("1"),
    "base": lambda run: "running the checks" in run.err,
    "input makers": lambda run: run.find("input_maker.py"),
    "base at work": lambda run: run.find("call_worker.py"),
    "warm start": lambda run: run.find("warm_server.py"),
    "canary": lambda run: "making sure" in run.err or "Phase.CANARY" in run.err,
    "candidates": lambda run: run.begun(),
    "end": let_go,
}
SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL")


def choose_instants(count):
    """Each stage with a kill and another signal, then all there is; a little later each time."""
    rng = random.Random(4)
    first = []
    for place, stage in enumerate(STAGES):
        first.append((stage, SIGNALS[place % 2], place % 4 > 1))
        first.append((stage, "SIGKILL", place % 2 == 1))
    every = [(stage, name, group) for stage in STAGES for name in SIGNALS for group in (0, 1)]
    rest = [item for item in every if item not in first]
    rng.shuffle(rest)
    rng.shuffle(every)
    for place in range(count):
        chosen = [*first, *rest, *every]
        stage, name, to_group = chosen[place % len(chosen)]
        delay_s = rng.choice([0.0, rng.uniform(0, 0.03), rng.uniform(0, 0.2)])
        sandbox = rng.choice([*WORKING, *WORKING, "plain"]) if stage != "warm start" else WORKING[0]
        whom = "group" if to_group else "alone"
        label = f"{place}-{stage}-{name}-{whom}-{delay_s:.3f}-{sandbox}"
        yield pytest.param(stage, name, to_group, delay_s, sandbox, id=label)


def allowed_codes(stage, name):
    """How it may end: before its first and after its last stage we may not be there to say so."""
    by_itself = -getattr(signal, name)
    return {"start": {130, by_itself, 1}, "end": {130, by_itself, 0}}.get(stage, {130})


@pytest.mark.parametrize(
    ("stage", "name", "to_group", "delay_s", "sandbox"), list(choose_instants(COUNT))
)
def test_a_signal_leaves_nothing(site, run, stage, name, to_group, delay_s, sandbox):  # 1, 8
    if stage == "input makers":
        write_files(site.top, {"tools/make.py": SLOW_MAKER})
    before = fingerprint(site.top)
    cold = stage in ("start", "end")  # where the interpreter has a say in how it ends
    with site.evaluate("right", "waits", sandbox=sandbox, cold=cold) as running:
        running.await_true(STAGES[stage])
        if stage == "candidates":  # what a kill may leave lies where the next start finds it
            assert list(site.temp.iterdir()) == []
        time.sleep(delay_s)
        running.send(getattr(signal, name), to_group=to_group)
        code = running.end()
        running.await_true(lambda run: not site.locked())
        running.await_nobody()
        if name != "SIGKILL":
            assert code in allowed_codes(stage, name), running.err
        elif code != 0 or stage != "end":
            assert code == -signal.SIGKILL
            assert run("clean")[0] == 0
    assert "Traceback" not in running.err or stage == "start"
    assert_nothing_left(site, running)
    assert fingerprint(site.top) == before


@pytest.mark.parametrize(
    ("stage", "names"),
    [("candidates", ("SIGTERM", "SIGTERM")), ("warm start", ("SIGINT", "SIGINT", "SIGTERM"))],
)
def test_more_signals_change_nothing(site, stage, names):  # 8; `timeout` sends its own twice
    with site.evaluate("right", "waits") as running:
        running.await_true(STAGES[stage])
        for name in names:
            running.send(getattr(signal, name))
        assert running.end() == 130, running.err
        running.await_nobody()
    assert_nothing_left(site, running)


@pytest.mark.parametrize("stage", ["base at work", "canary", "candidates"])
def test_ctrl_c_in_a_program_of_the_users_leaves_nothing(site, stage):  # 8
    candidates = [site.folder / "candidates" / name for name in ("right", "waits")]
    words = [site.locks, site.top / "problem.yaml", *candidates]
    with site.start(LIBRARY, *words, cold=stage == "canary") as running:
        running.await_true(STAGES[stage])
        running.send(signal.SIGINT, to_group=True)
        assert running.end() == -signal.SIGINT
        assert running.err.endswith("KeyboardInterrupt\n")
        running.await_nobody()
    assert_nothing_left(site, running)


def test_a_warm_server_that_still_imports_ends_with_the_arena(site):  # 8
    (site.home / "slow.py").write_text(
        "import pathlib, time\npathlib.Path('here').touch()\ntime.sleep(1000)\n"
    )
    with site.start(SLOW_SERVER, site.home) as running:
        running.await_true(lambda run: list(site.home.glob("warm-*/here")))
        running.send(signal.SIGKILL)
        assert running.end() == -signal.SIGKILL
        running.await_nobody()


def test_the_next_start_clears_up_and_leaves_a_live_one_alone(site):  # 8, 15
    options = ["--json"]
    with (
        site.evaluate("waits", "right", "wrong", options=options) as live,
        site.evaluate("waits") as killed,
        site.evaluate("waits") as stopped,
    ):
        for item in (live, killed, stopped):
            item.await_true(lambda run: run.begun())
        killed.send(signal.SIGKILL)
        stopped.send(signal.SIGTERM)
        assert (killed.end(), stopped.end()) == (-signal.SIGKILL, 130)
        for entry in (killed, stopped):
            entry.await_nobody()
        assert len(site.files()) == 2
        with site.evaluate("right", "wrong", options=options) as following:
            assert following.end() == 0, following.err
            assert following.verdicts() == JUDGED
            following.await_nobody()
        assert site.files() == [str(live.pool())]
        assert killed.groups() == stopped.groups() == []
        live.let_go()
        assert live.end() == 0, live.err
        assert live.verdicts() == {"waits": "passed", **JUDGED}
        live.await_nobody()
    assert_nothing_left(site, live)


# -- cancelled from inside --


def run_within(work):
    """Run it to its end, or tell what it waits for."""

    async def run():
        with anyio.fail_after(PATIENCE_S + 2 * COUNT):
            await work()

    try:
        anyio.run(run)
    except TimeoutError:
        pytest.fail(f"it goes on: {list_below(os.getpid())}")


def open_here(site, slots=2):
    problem = load_problem(site.top / "problem.yaml")
    return open_arena(problem, slots=slots, settings=ArenaSettings(lock_folder=site.locks))


def read(site, name):
    return read_candidate(site.folder / "candidates" / name)


def numbered(site, number):
    """A right candidate that equals no other."""
    name = f"right-{number}"
    site.add_candidates(**{name: RIGHT.replace("list(numbers)", f"numbers, {number} - {number}")})
    return read(site, name)


def count_own():
    """Our open files and threads, without those that nobody has."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def assert_no_more_than(before):
    """Threads that have nothing to do any more may take a moment to end."""
    deadline = time.monotonic() + SOON_S

    def has_more():
        return any(now > then for now, then in zip(count_own(), before, strict=True))

    while has_more() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not has_more(), (count_own(), before, threading.enumerate())


async def await_only(site, words):
    """Until the processes that we have are those that were called with these words.

    Others may have been left here by whoever ran before us.
    """
    while True:
        below = [item for item in list_below(os.getpid()) if item[0] not in site.strangers]
        if len(below) == len(words) and all(
            word in argv for word, (_, argv) in zip(words, below, strict=True)
        ):
            return
        await anyio.sleep(0.01)


async def meet(site, arena, numbers):
    """As many candidates at once as there are slots: each has one when all have begun."""
    site.add_candidates(**{f"waits-{n}": WAITS.replace("0.01", f"0.01{n}") for n in numbers})
    async with anyio.create_task_group() as tasks:
        for number in numbers:
            tasks.start_soon(arena.judge, read(site, f"waits-{number}"))
        while len(found := list(site.home.glob("arena/*/*/begun"))) < len(numbers):
            await anyio.sleep(0.01)
        for item in found:
            item.with_name("go").touch()


def test_a_batch_may_be_cancelled_at_any_time_and_all_slots_are_free(site):  # 9
    rng = random.Random(9)
    before = count_own()

    async def work():
        async with open_here(site) as arena:
            for turn in range(max(10, COUNT // 2)):
                batch = [numbered(site, 10 * turn + place) for place in range(4)]
                with anyio.move_on_after(
                    rng.choice([0, rng.uniform(0, 0.05), rng.uniform(0, 0.3)])
                ):
                    async with anyio.create_task_group() as tasks:
                        for item in batch:
                            tasks.start_soon(arena.judge, item)
                await await_only(site, ["warm_server.py"])
                found = await arena.judge(numbered(site, 10 * turn + 9))
                assert (found.verdict, found.rejection) == ("passed", None)
            await meet(site, arena, [1, 2])
            assert (await arena.judge(read(site, "wrong"))).verdict == "rejected"
        await await_only(site, [])

    run_within(work)
    assert_no_more_than(before)
    assert site.files() == []
    assert site.locked() == []


def test_opening_may_be_cancelled_at_any_time(site):  # 7, 8
    rng = random.Random(7)
    before = count_own()

    async def work():
        for _ in range(max(5, COUNT // 3)):
            with anyio.move_on_after(rng.uniform(0, 1)):
                async with open_here(site):
                    await anyio.sleep_forever()
            await await_only(site, [])
            assert site.files() == []

    run_within(work)
    assert_no_more_than(before)
    assert site.locked() == []


# -- trouble with the host --


def judge(site, *names, **more):
    """Evaluate to the end; (exit code, verdicts or what was said instead)."""
    with site.evaluate(*names, options=["--json"], **more) as running:
        code = running.end()
        running.await_nobody()
        assert "Traceback" not in running.err
        assert '"ok": false' not in running.out or code in (2, 4)
        told = running.verdicts() if '"candidates"' in running.out else running.out
    assert site.locked() == []
    assert running.groups() == []
    return code, told


def assert_nobody_is_blamed(code, told):
    """Right verdicts, or it was said that we failed: never a rejection for what is ours."""
    if isinstance(told, str):
        assert code in (2, 4)
        assert '"error": "' in told
        return
    for name, verdict in told.items():
        assert verdict in (JUDGED.get(name, "passed"), "inconclusive"), told
    assert code == (4 if "inconclusive" in told.values() else 0)


@pytest.fixture
def small_disk(site):
    """Mounts a disk of some size for the pool."""
    mounted = []

    def mount(size_kb):
        command = ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", str(site.home)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("no disk can be mounted here")
        mounted.append(site.home)

    yield mount
    for place in mounted:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("size_kb", [64, 500, 1000])
def test_a_full_disk_is_reported_and_no_candidate_is_blamed(site, small_disk, size_kb):  # 6, 17
    (site.top / "data.bin").write_bytes(random.Random(1).randbytes(300_000))
    small_disk(size_kb)
    code, told = judge(site, "right", "wrong")
    assert_nobody_is_blamed(code, told)
    if size_kb < 600:
        assert "FAIRTRIAL_HOME" in told
    assert site.files() == []


def test_a_candidate_that_fills_the_disk_costs_no_other(site, small_disk):  # 17
    fills = WAITS.replace(
        "import os, time",
        """import os, time
    try:
        with open("filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        pass""",
    )
    site.add_candidates(fills=fills)
    small_disk(8000)
    meanwhile = []

    async def judge_meanwhile(arena):
        meanwhile.append((await arena.judge(numbered(site, 1))).verdict)

    async def work():
        async with open_here(site) as arena, anyio.create_task_group() as tasks:
            tasks.start_soon(arena.judge, read(site, "fills"))
            while not (begun := list(site.home.glob("arena/*/*/begun"))):
                await anyio.sleep(0.01)
            tasks.start_soon(judge_meanwhile, arena)
            while not has_room(site.home):
                await anyio.sleep(0.01)
                with suppress(FileNotFoundError):  # its slot is cleared at times
                    begun[0].with_name("go").touch()
            while begun[0].exists():
                await anyio.sleep(0.01)
            assert (await arena.judge(numbered(site, 2))).verdict == "passed"

    run_within(work)
    assert meanwhile == ["passed"]
    assert site.files() == []


FILLS = MODULE.replace(
    "return",
    """import os, time
    open("begun", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    try:
        with open("filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        pass
    while not os.path.exists("end"):
        time.sleep(0.01)
    return 0 *""",
)
# Finds the disk full, and fails for it later on.
FAILS_LATER = MODULE.replace(
    "return",
    """import os, time
    open("waits", "w").close()
    failure = None
    while not os.path.exists("go"):
        try:
            with open("probe", "ab", buffering=0) as file:
                file.write(bytes(4096))
        except OSError as error:
            failure = error
            open("hit", "w").close()
        time.sleep(0.01)
    if failure:
        raise failure
    return""",
)


def test_a_candidate_that_fails_on_a_disk_filled_by_another_is_not_rejected(site, small_disk):  # 17
    site.add_candidates(fills=FILLS, later=FAILS_LATER)
    small_disk(8000)
    told = {}

    def touch(beside, name):
        for path in site.home.glob(f"arena/*/*/{beside}"):
            with suppress(FileNotFoundError):  # its slot is cleared at times
                path.with_name(name).touch()

    async def await_file(name):
        while not list(site.home.glob(f"arena/*/*/{name}")):
            await anyio.sleep(0.01)

    async def work():
        async with open_here(site) as arena, anyio.create_task_group() as tasks:

            async def judge(name):
                told[name] = (await arena.judge(read(site, name))).verdict

            for name in ("fills", "later"):
                tasks.start_soon(judge, name)
            await await_file("begun")
            await await_file("waits")
            touch("begun", "go")
            await await_file("hit")
            touch("filler", "end")
            while list(site.home.glob("arena/*/*/filler")):
                await anyio.sleep(0.01)
            while len(told) < 2:  # both are tried again
                touch("waits", "go")
                touch("begun", "go")
                touch("filler", "end")
                await anyio.sleep(0.01)

    run_within(work)
    assert told == {"fills": "rejected", "later": "passed"}
    assert site.files() == []


@pytest.mark.parametrize("removes", ["", "rm src/few.py; cd zzz;", "rm zzz/last.txt; cd src;"])
def test_a_build_that_fills_the_disk_is_rejected_and_stops_nothing(site, small_disk, removes):
    build = f"if grep -q hog src/few.py; then {removes} cat /dev/zero > filler; fi"
    problem = replace(load_problem(site.top / "problem.yaml"), build=("sh", "-c", build))
    write_files(site.top, {"zzz/last.txt": "put back after all others\n"})
    site.add_candidates(**{f"hog-{n}": f"{MODULE}\nhog = {n}\n" for n in range(2)})
    small_disk(8000)
    settings = ArenaSettings(lock_folder=site.locks)

    async def work():
        async with open_arena(problem, slots=1, settings=settings) as arena:
            for name in ("hog-0", "hog-1"):
                found = await arena.judge(read(site, name))
                assert (found.verdict, found.rejection.reason) == ("rejected", "build")
            assert (await arena.judge(numbered(site, 1))).verdict == "passed"

    run_within(work)
    assert site.files() == []


def test_a_home_that_can_not_be_used_is_reported(site):
    code, told = judge(site, "right", FAIRTRIAL_HOME="/dev/null/home")
    assert code == 4
    assert "set FAIRTRIAL_HOME to a folder" in told


def test_a_temp_folder_that_is_not_there_is_done_without(site):
    assert judge(site, "right", "wrong", TMPDIR="/no/such/folder") == (0, JUDGED)
    assert site.files() == []


def test_a_machine_without_git_gets_a_hint_to_install_it(site):
    code, told = judge(site, "right", PATH=str(site.temp))
    assert code == 4
    assert "git is not installed" in told
    assert site.files() == []


GIT = """#!/bin/sh
case " $* " in *" {word} "*) {how};; esac
exec {git} "$@"
"""
DIFF = f"""--- a/src/few.py
+++ b/src/few.py
@@ -5 +5 @@
-{MODULE.splitlines()[4]}
+    return sum([*numbers])
"""
FAILS, DIES = "echo 'fatal: broken on purpose' >&2; exit 128", "kill -9 $$"


@pytest.mark.parametrize(
    ("word", "how"),
    [
        ("nothing", FAILS),
        ("config", FAILS),
        ("fast-import", DIES),
        ("read-tree", FAILS),
        ("checkout-index", DIES),
        ("cat-file", FAILS),
        ("apply", DIES),
        ("diff-index", FAILS),
    ],
)
def test_git_that_fails_is_our_failure(site, word, how):  # 17
    (site.folder / "candidates" / "diff.diff").write_text(DIFF)
    programs = site.folder / "bin"
    programs.mkdir()
    (programs / "git").write_text(GIT.format(word=word, how=how, git=shutil.which("git")))
    (programs / "git").chmod(0o755)
    code, told = judge(site, "diff.diff", "right", PATH=f"{programs}:{os.environ['PATH']}")
    assert code in (2, 4) or word == "nothing", told
    assert_nobody_is_blamed(code, told)
    if word in ("apply", "diff-index"):
        assert told == {"diff.diff": "inconclusive", "right": "passed"}
    assert site.files() == []


@pytest.mark.parametrize("number", [24, 64])
def test_out_of_open_files(site, number):  # 17
    for place in range(16):
        numbered(site, place)
    names = [f"right-{place}" for place in range(16)]
    prefix = ["/bin/sh", "-c", f'ulimit -n {number}; exec "$@"', "sh"]
    code, told = judge(site, *names, prefix=prefix)
    assert_nobody_is_blamed(code, told)
    if isinstance(told, str):
        assert "open" in told
    assert site.files() == []


NO_NAMESPACES = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


def test_a_machine_without_sandboxes_says_so_and_plain_has_to_be_asked_for(site):  # 11
    prefix = ["unshare", "--user", "--map-root-user", "sh", "-c", NO_NAMESPACES, "sh"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces can't be forbidden here")
    code, told = judge(site, "right", prefix=prefix)
    assert code == 4
    assert "--unsandboxed" in told
    assert judge(site, "right", "wrong", sandbox="plain", prefix=prefix) == (0, JUDGED)
    assert site.files() == []


# -- what is pulled from under a candidate that runs --


def disturb(site, deed, *names, sandbox=None, options=()):
    """Evaluate one after the other; `deed` is done while the one that waits runs."""
    options = ["--json", "--parallel-candidates", "1", *options]
    with site.evaluate("waits", *names, sandbox=sandbox, options=options) as running:
        running.await_true(lambda run: run.begun())
        deed(running)
        running.let_go()
        code = running.end()
        running.await_nobody()
        assert "Traceback" not in running.err
        verdicts = running.verdicts()
        out = running.out
    assert_nothing_left(site, running)
    return code, verdicts, out


def test_a_repository_that_is_deleted_meanwhile_is_not_needed_any_more(site):  # 1
    code, verdicts, _ = disturb(site, lambda run: shutil.rmtree(site.top), "right", "wrong")
    assert (code, verdicts) == (0, {"waits": "passed", **JUDGED})


def test_a_slot_that_is_deleted_costs_its_candidate_at_most(site):  # 17
    def delete(run):
        (slot,) = run.begun()
        while slot.exists():  # while its candidate makes new files there
            shutil.rmtree(slot, ignore_errors=True)

    _, verdicts, _ = disturb(site, delete, "right", "wrong")
    assert verdicts.pop("waits") != "passed"
    assert verdicts == JUDGED


def test_a_warm_server_that_is_killed_is_done_without(site):  # 17
    def kill(run):
        servers = [pid for pid in run.find("warm_server.py") if pid not in run.inits()]
        os.kill(servers[0], signal.SIGKILL)

    code, verdicts, _ = disturb(site, kill, "right", "wrong")
    assert (code, verdicts) == (0, {"waits": "passed", **JUDGED})


@pytest.mark.parametrize("sandbox", [*WORKING, "warm"])
def test_an_init_that_is_killed_is_our_failure(site, sandbox):  # 10, 17
    def kill(run):
        (init,) = run.inits()
        os.kill(init, signal.SIGKILL)

    how = {} if sandbox == "warm" else {"sandbox": sandbox, "options": ["--cold"]}
    code, verdicts, out = disturb(site, kill, "right", "wrong", **how)
    assert (code, verdicts) == (4, {"waits": "inconclusive", **JUDGED})
    assert "was ended from outside" in out

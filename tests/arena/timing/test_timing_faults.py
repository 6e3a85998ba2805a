"""Whatever happens while candidates are timed in real sandboxes: who is blamed, and what is left.

Numbers are those of the arena's requirements, and of the bench's where that is said.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from anyio import from_thread
from arena_fault_kit import WORKING
from clock_kit import (
    FASTER,
    MODULE,
    PATIENCE_S,
    few_changes,
    find_workers,
    meddle,
    open_site,
    pid_of,
    record_sessions,
    with_schedule,
)

from fairtrial.arena import (
    ArenaSettings,
    Candidate,
    FileState,
    Measurement,
    Reason,
    Verdict,
    evaluate_candidates,
)
from fairtrial.arena.timing import workers as channels
from fairtrial.arena.timing.decision import DecisionRules, measure, race
from fairtrial.arena.timing.function_benchmark import FunctionBenchmark
from fairtrial.arena.timing.session import EMPTY_TURNS
from fairtrial.arena.timing.worker_channel import WorkerChannel
from fairtrial.core import LabError, StudyError
from fairtrial.sandbox import HostLock, Limits

pytestmark = pytest.mark.slow

needs_sandbox = pytest.mark.skipif(not WORKING, reason="no full sandbox works here")
HELD = 2
"""The slots of the base and of the supplier."""
RULES = DecisionRules(alpha=0.05, min_effect=0.02, budget_s=PATIENCE_S)
MEMORY_MB = 150
# From its fourth call on it does something else; checks of two cases never see that.
LATER = """
count = 0

def squares(numbers):
    global count
    count += 1
    if count > 3:
        {deed}
    return sum(number * number for number in numbers)
"""


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Processes come and leave when they get the core; how they ended is to be told."""
    monkeypatch.setattr(channels, "LEAVE_S", PATIENCE_S)
    monkeypatch.setattr(channels, "START_S", PATIENCE_S)


@pytest.fixture(scope="module")
def sandboxed(tmp_path_factory):
    if not WORKING:
        pytest.skip("no full sandbox works here")
    limits = Limits(memory_mb=MEMORY_MB)
    with open_site(tmp_path_factory.mktemp("bench"), limits=limits) as site:
        yield site


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with open_site(tmp_path_factory.mktemp("plain"), sandbox="plain") as site:
        yield site


@pytest.fixture
def site(sandboxed):
    """Nothing is left of what a test did there."""
    before, files = sandboxed.call(look_at_thread), count_files()
    yield sandboxed
    assert_nothing_left(sandboxed)
    assert sandboxed.call(look_at_thread) == before
    deadline = time.monotonic() + PATIENCE_S
    while count_files() > files:  # a thread that was left alone may have one for a moment
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count_files():
    """How many descriptors are open in this process; all its loops have theirs already."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def look_at_thread():
    return threading.get_ident(), os.sched_getaffinity(0)


def assert_nothing_left(site):
    """No worker runs, the host's lock can be had, slots can be used."""

    async def take():
        with anyio.fail_after(PATIENCE_S):
            async with HostLock(site.locks).exclusive():
                pass
            pool = site.bench.resources.pool
            async with AsyncExitStack() as leases:
                for _ in range(pool.size - HELD):
                    await leases.enter_async_context(pool.acquire())
                assert find_workers() == []

    site.call(take)


def kill(line):
    os.kill(pid_of(line), signal.SIGKILL)


@pytest.mark.parametrize("at", [(b"L", 0), (b"I", 1), (b"G", 2), (b"C", 1)], ids=str)
def test_a_candidate_s_worker_that_dies_rejects_it(site, monkeypatch, at):
    meddle(monkeypatch, at=at, deed=kill)
    rejection = site.run(count=3).rejection
    assert rejection.reason == Reason.CRASH
    assert "squares: while it was timed" in rejection.message
    assert "died of SIGKILL" in rejection.message


def test_sessions_before_it_died_don_t_save_it(site, monkeypatch):
    sessions = meddle(monkeypatch, at=(b"", 0))

    def late(line):
        if len(sessions) == 2:
            kill(line)

    meddle(monkeypatch, at=(b"G", 2), deed=late)
    batch = site.run(count=4)
    assert (len(batch.replicates), batch.rejection.reason) == (1, Reason.CRASH)
    assert len(sessions) == 2


@pytest.mark.parametrize("at", [(b"L", 0), (b"G", 2), (b"C", 1)], ids=str)
def test_a_base_s_worker_that_dies_is_our_failure(site, monkeypatch, at):  # 17
    meddle(monkeypatch, arm="base", at=at, deed=kill)
    with pytest.raises(LabError, match=r"squares: the base failed while it was timed.*SIGKILL"):
        site.run()


def test_a_base_that_dies_once_costs_one_candidate_its_verdict_and_no_other(site, monkeypatch):
    ended = []

    def once(line):
        if not ended:
            ended.append(pid_of(line))
            kill(line)

    meddle(monkeypatch, arm="base", at=(b"G", 8), deed=once)
    entries = {"one": few_changes(MODULE + "#"), "two": few_changes(FASTER)}
    found = site.call(partial(race, site.bench, entries, replace(RULES, budget_s=1.5)))
    assert found["one"].reason == Reason.EVALUATOR
    assert isinstance(found["two"], Measurement)
    assert found["two"].sessions


def test_a_candidate_that_hangs_in_a_timed_call_is_out(site, monkeypatch):
    monkeypatch.setattr(channels, "LEAVE_S", 0.1)
    # Its fourth call is the first of the third turn with calls: nobody else is hurried.
    meddle(monkeypatch, at=(b"G", 2 + EMPTY_TURNS), within_s=0.5)
    rejection = site.run(LATER.format(deed="import time; time.sleep(1000)")).rejection
    assert rejection.reason == Reason.TIMEOUT
    assert "no reply within 0.5 s" in rejection.message


def test_how_long_a_reply_may_take_is_what_the_schedule_says(site, monkeypatch):
    waited, ask = set(), WorkerChannel.ask

    def note_and_ask(line, letter, payload=b"", *, timeout_s):
        waited.add((letter, timeout_s))
        return ask(line, letter, payload, timeout_s=timeout_s)

    monkeypatch.setattr(WorkerChannel, "ask", note_and_ask)
    site.run(bench=with_schedule(site.bench, timeout_s=77.0))
    assert {item for item in waited if item[0] != b"M"} == {
        (bytes([one]), 77.0) for one in b"LIGCV"
    }


def test_a_candidate_that_takes_too_much_memory_while_it_is_timed_is_out(site):
    hog = """import time
        hog = [b"x" * (1 << 23) for _ in range(100)]
        time.sleep(1000)"""
    rejection = site.run(LATER.format(deed=hog)).rejection
    assert rejection.reason == Reason.MEMORY
    assert f"more memory than {MEMORY_MB} MB" in rejection.message


@pytest.mark.parametrize(
    ("deed", "reason", "words"),
    [
        ("import os; os._exit(0)", Reason.CRASH, "exited with 0"),
        ("import os; os.abort()", Reason.CRASH, "SIGABRT"),
        ("import os; os.closerange(3, 99)", Reason.CRASH, "ended before it was done"),
        ("return 7", Reason.DIFFERENT, "gave something else than the base"),
        ("raise KeyError(5)", Reason.DIFFERENT, "KeyError"),
        ("raise SystemExit(0)", Reason.DIFFERENT, "SystemExit"),
        ("numbers.append(1)", Reason.DIFFERENT, "gave something else"),
    ],
)
def test_what_a_candidate_may_not_do_while_it_is_timed(site, deed, reason, words):
    rejection = site.run(LATER.format(deed=deed)).rejection
    assert rejection.reason == reason
    assert words in rejection.message


@pytest.mark.parametrize("text", ["def squares(:", "import nothing_of_the_kind", "squares = 5"])
def test_one_that_can_not_be_loaded_is_out(site, text):
    rejection = site.run(text).rejection
    assert rejection is not None
    assert rejection.reason in (Reason.CRASH, Reason.DIFFERENT)


def test_a_candidate_can_not_change_its_slot_while_it_is_timed(site):
    """In a sandbox; it lies there read-only."""
    tries = """import os
        try:
            open(os.path.dirname(__file__) + "/new.py", "w")
        except OSError as error:
            raise RuntimeError(error.errno) from None"""
    rejection = site.run(LATER.format(deed=tries)).rejection
    assert "RuntimeError(30)" in rejection.message  # EROFS


# -- stopping --


def cancel_at(site, monkeypatch, arm, at):
    """Sessions that are cancelled in the middle; whether that is what ended them."""
    scopes = []

    def stop(line):
        from_thread.run_sync(scopes[0].cancel)

    async def work():
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await site.bench.run(few_changes(FASTER), "stop", 0, 5, PATIENCE_S)
        return scope.cancelled_caught

    with monkeypatch.context() as patch:
        sessions = meddle(patch, arm=arm, at=at, deed=stop)
        return site.call(work), sessions


@pytest.mark.parametrize(
    ("arm", "at"), [("base", (b"L", 0)), ("candidate", (b"G", 2)), ("base", (b"C", 2))], ids=str
)
def test_cancelled_in_the_middle_of_a_session(site, monkeypatch, arm, at):  # 17
    was_stopped, sessions = cancel_at(site, monkeypatch, arm, at)
    assert was_stopped
    assert len(sessions) == 1
    assert_nothing_left(site)
    batch = site.run(FASTER, count=2)  # and all of it still works
    assert (len(batch.replicates), batch.rejection) == (2, None)


def test_a_bench_that_is_left_in_the_middle_leaves_nothing(tmp_path, monkeypatch):
    """Sessions under way, the supplier, slots, files: all of it goes with the arena."""
    before = find_workers("input_supplier.py")
    with open_site(tmp_path, **({} if WORKING else {"sandbox": "plain"})) as site:
        assert len(find_workers("input_supplier.py")) > len(before)
        cancel_at(site, monkeypatch, "candidate", (b"G", 2))
        slots = site.bench.base.path.parent
        assert slots.exists()
    assert find_workers() == []
    assert find_workers("input_supplier.py") == before
    assert not slots.exists()


def test_a_supplier_that_is_killed_between_sessions_is_reported(tmp_path):
    with open_site(tmp_path, **({} if WORKING else {"sandbox": "plain"})) as site:
        assert site.run().rejection is None
        (placed,) = site.bench.benchmarks
        kill(placed.benchmark.supplier.channel)
        with pytest.raises(StudyError, match="the process that makes inputs is gone"):
            site.run()
        found = site.call(partial(measure, site.bench, "x", few_changes(FASTER), RULES))
        assert found.reason == Reason.EVALUATOR
        assert_nothing_left(site)


# -- one at a time --

OTHER = """
import json, sys
from pathlib import Path
sys.path[:0] = sys.argv[2].split(":")
from clock_kit import open_site, record_sessions
with open_site(Path(sys.argv[1]), locks=Path(sys.argv[3])) as site:
    print("ready", flush=True)
    sys.stdin.readline()
    records = record_sessions()
    for label in "ab":
        site.run(count=2, label=label)
    print(json.dumps(records), flush=True)
"""


def is_at_the_gate(pid):
    """Whether a process waits for the host's lock, or has it: it holds its files open."""
    links = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(path.readlink().name)
        except OSError:
            continue
    return any(name.startswith("fairtrial-host.gate") for name in links)


def test_two_arenas_in_two_processes_never_time_at_once(site, tmp_path, monkeypatch):  # 15
    """The other one asks while we time, and then both go on as they like."""
    argv = [sys.executable, "-c", OTHER, tmp_path, ":".join(sys.path), site.locks]
    other = subprocess.Popen(
        list(map(str, argv)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "ready\n"
        waited = []

        def let_it_ask(line):
            if not waited:
                other.stdin.write("go\n")
                other.stdin.flush()
                deadline = time.monotonic() + PATIENCE_S
                while not is_at_the_gate(other.pid):
                    assert time.monotonic() < deadline
                    time.sleep(0.002)
                waited.append(time.monotonic())

        own = record_sessions(monkeypatch.setattr)
        meddle(monkeypatch, at=(b"G", 2), deed=let_it_ask)
        for label in "abc":
            site.run(count=2, label=label)
        theirs = json.loads(other.stdout.readline())
        assert other.wait(PATIENCE_S) == 0
    finally:
        other.kill()
        other.wait()
        other.stdin.close()
        other.stdout.close()
    assert (len(own), len(theirs)) == (6, 4)
    assert own[0][0] < waited[0] < own[0][1]
    ordered = sorted([*own, *map(tuple, theirs)])
    assert all(one[1] <= later[0] for one, later in pairwise(ordered))


def test_nothing_is_checked_while_another_is_timed(site, monkeypatch):  # 15
    """Whoever asks for a shared lease in the middle of a session gets it after the heat."""
    got = []

    async def check():
        async with HostLock(site.locks).shared():
            got.append("checked")

    async def work():
        async with anyio.create_task_group() as tasks:

            def begin(line):
                from_thread.run_sync(tasks.start_soon, check)

            meddle(monkeypatch, at=(b"G", 2), deed=begin)
            take = FunctionBenchmark.run

            async def run(self, *given):
                session = await take(self, *given)
                got.append("session")
                return session

            monkeypatch.setattr(FunctionBenchmark, "run", run)
            await site.bench.run(few_changes(FASTER), "x", 0, 2, PATIENCE_S)

    site.call(work)
    assert got[:2] == ["session", "session"]
    assert set(got[2:]) == {"checked"}


# -- without a sandbox --

WRITES = """import glob, os
        here = os.path.dirname(__file__)
        for place in glob.glob(here + {place!r}):
            open(place + "/added.py", "w").close()"""


def test_a_slot_that_is_changed_while_it_is_timed_is_tampering(plain):
    rejection = plain.run(LATER.format(deed=WRITES.format(place=""))).rejection
    assert rejection.reason == Reason.TAMPERING
    assert "changed while it was timed" in rejection.message
    assert plain.run(FASTER).rejection is None


def test_a_candidate_that_changes_the_base_s_slot_affects_no_other(plain):
    """It would make the base slower; whoever comes next is compared with the base as it was."""
    slot = plain.bench.base.path
    before = sorted(slot.rglob("*"))
    spoils = WRITES.format(place=f"/../../{slot.name}/src").replace("added.py", "few.py")
    with pytest.raises(LabError, match="the base's slot was changed"):
        plain.run(LATER.format(deed=spoils))
    batch = plain.run(FASTER)
    assert (len(batch.replicates), batch.rejection) == (1, None)
    assert (slot / "src" / "few.py").read_text() == MODULE
    assert sorted(slot.rglob("*")) == before


def test_the_slot_of_one_that_was_caught_is_clean_for_the_next(plain):
    caught = plain.run(LATER.format(deed=WRITES.format(place="")))
    assert caught.rejection.reason == Reason.TAMPERING
    looks = "import os\nassert 'added.py' not in os.listdir(os.path.dirname(__file__))\n"
    for _ in range(plain.bench.resources.pool.size):  # whichever slot it gets
        assert plain.run(looks + MODULE).rejection is None


def test_an_evaluation_goes_on_after_one_that_dies_while_it_is_timed(site, tmp_path):  # 17
    """Through the front door: the verdict of one, and of the others."""
    problem = replace(site.arena.problem, limits=Limits())
    given = [
        Candidate(name, files={"src/few.py": FileState(text.encode())})
        for name, text in (
            ("dies", LATER.format(deed="import os; os._exit(3)")),
            ("faster", FASTER),
        )
    ]
    settings = ArenaSettings(lock_folder=tmp_path, warm=False)
    found = anyio.run(partial(evaluate_candidates, problem, given, settings=settings))
    dies, faster = found.judgements
    assert (dies.verdict, dies.rejection.reason) == (Verdict.REJECTED, Reason.CRASH)
    assert "exited with 3" in dies.rejection.message
    assert faster.rejection is None
    assert faster.measurement.sessions

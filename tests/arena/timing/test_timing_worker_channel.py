"""Worker channels to real processes: CPU times, protocol violations and failures."""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from textwrap import dedent

import anyio
import pytest
from calls_kit import PYTHON, Slots
from clock_kit import PATIENCE_S, pid_of

from fairtrial.arena import Benchmark, Check, CodeProblem
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.timing import (
    inputs as supply,
    worker_channel as line_module,
    workers as channels,
)
from fairtrial.arena.timing.inputs import open_supplier
from fairtrial.arena.timing.session import ArmError
from fairtrial.arena.timing.worker_channel import ChannelError, ChannelTimeoutError, WorkerChannel
from fairtrial.arena.timing.workers import is_late, keeping_away, run_workers
from fairtrial.core import StudyError
from fairtrial.sandbox import Ending
from fairtrial.sandbox.wire import HEADER_BYTES, pack, unpack_header

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells who is there")
# The other side: `frames` as it is, and a deed for each letter.
PROGRAM = f"""
import os, struct, sys, threading, time
sys.path.insert(0, {str(HARNESS)!r})
import frames
number = int(os.environ["FAIRTRIAL_CHANNEL"])
requests = frames.RequestChannel(number)
requests.reply(b"H", 0)
def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
while True:
    letter, order, payload = requests.receive()
    answer = b""
    if letter == b"B":
        burn(float(payload))
    elif letter == b"T":
        threads = [threading.Thread(target=burn, args=(float(payload) / 2,)) for _ in range(2)]
        [each.start() for each in threads]
        [each.join() for each in threads]
    elif letter == b"P":
        answer = str(os.getpid()).encode()
    elif letter == b"E":
        answer = payload
    elif letter == b"S":
        time.sleep(1000)
    elif letter == b"X":
        os._exit(7)
    elif letter == b"R":  # as it is
        os.write(number, payload)
        continue
    elif letter == b"D":  # the beginning of a reply, then death
        os.write(number, frames.pack(b"D", order, b"x" * 1000)[: int(payload)])
        os._exit(7)
    elif letter == b"F":  # a fork must not speak for it
        if os.fork() == 0:
            requests.reply(b"F", order, b"forged")
            os._exit(9)
        os.wait()
        answer = b"true"
    requests.reply(letter, order, answer)
"""


@contextmanager
def talking(program=PROGRAM, *, greets=True):
    """A line to a process of its own."""
    line = WorkerChannel()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        pass_fds=[line.remote],
        env={"FAIRTRIAL_CHANNEL": str(line.remote)},
    )
    try:
        if greets:
            line.wait_for_start(PATIENCE_S)
            line.close_remote()
        yield line, process
    finally:
        line.close()
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def there():
    with talking() as (line, process):
        yield partial(line.ask, timeout_s=PATIENCE_S), line, process


@linux_only
def test_the_worker_s_process_is_known_from_the_kernel(there):
    ask, line, process = there
    assert pid_of(line) == process.pid == int(ask(b"P").payload)


@linux_only
@pytest.mark.parametrize("letter", [b"B", b"T"])
def test_cpu_time_is_the_other_process_s_with_all_its_threads(there, letter):
    ask, _, _ = there
    for _ in range(20):  # a machine that is one of several may count what others do as ours
        busy = ask(letter, b"0.15")
        assert busy.cpu_s >= 0.15
        assert busy.wall_s >= 0.15 / 2
        if busy.cpu_s < 0.15 + 0.1 and ask(b"E").cpu_s < 0.1:
            break
    else:
        pytest.fail("it is always more than was used")


@linux_only
def test_a_sleeping_process_uses_none():
    with talking() as (line, _):
        before = line.cpu_s()
        with pytest.raises(ChannelTimeoutError):
            line.ask(b"S", timeout_s=0.3)
        assert before <= line.cpu_s() < before + 0.1


@linux_only
def test_cpu_time_goes_on_between_requests_and_is_seen():
    """Late threads: bench 4."""
    late = PROGRAM.replace(
        "burn(float(payload))", "threading.Thread(target=burn, args=(1000,)).start()"
    )
    with talking(late) as (line, _):
        reply = line.ask(b"B", b"", timeout_s=PATIENCE_S)
        before = line.cpu_s()
        assert before >= reply.cpu_s
        deadline = time.monotonic() + PATIENCE_S
        while line.cpu_s() < before + 0.1:
            assert time.monotonic() < deadline
            time.sleep(0.005)


@linux_only
def test_cpu_time_of_a_process_that_is_gone_is_not_known():
    with talking() as (line, process):
        process.kill()
        process.wait()
        assert line.cpu_s() is None
        with pytest.raises(ChannelError):
            line.ask(b"E", timeout_s=PATIENCE_S)


def test_without_credentials_from_the_kernel_the_rest_still_works(monkeypatch):
    monkeypatch.setattr(line_module, "_PASS_CREDENTIALS", None)
    with talking() as (line, _):
        reply = line.ask(b"E", b"hello", timeout_s=PATIENCE_S)
        assert (reply.payload, reply.cpu_s, line.cpu_s()) == (b"hello", None, None)
        assert reply.wall_s > 0


@pytest.mark.parametrize("size", [0, 1, 2**16, 5 * 2**20])
def test_payloads_arrive_complete(there, size):
    ask, _, _ = there
    sent = os.urandom(size)
    assert ask(b"E", sent).payload == sent


def test_a_fork_of_the_worker_can_not_reply_for_it(there):
    ask, _, _ = there
    assert ask(b"F").payload == b"true"
    assert ask(b"E", b"still in step").payload == b"still in step"


NOT_ASKED = "something else than the requested reply"


@pytest.mark.parametrize(
    "forged",
    [
        pack(b"E", 1),
        pack(b"R", 2),
        pack(b"R", 0),
        struct.pack(">cIQ", b"R", 1, line_module.LARGEST_REPLY + 1),
        struct.pack(">cIQ", b"R", 1, 2**64 - 1),
        b"\xff" * HEADER_BYTES,
    ],
    ids=["letter", "next number", "old number", "too large", "far too large", "nonsense"],
)
def test_a_reply_that_belongs_to_no_request_is_refused(forged):
    with talking() as (line, _), pytest.raises(ChannelError, match=NOT_ASKED) as stop:
        line.ask(b"R", forged, timeout_s=PATIENCE_S)
    assert not isinstance(stop.value, ChannelTimeoutError)


def test_a_reply_that_is_sent_in_advance_is_refused():
    """Two replies to one request: the second is not that to the next."""
    with talking() as (line, _):
        line.ask(b"R", pack(b"R", 1) + pack(b"R", 1), timeout_s=PATIENCE_S)
        with pytest.raises(ChannelError, match=NOT_ASKED):
            line.ask(b"R", pack(b"R", 2), timeout_s=PATIENCE_S)


@pytest.mark.parametrize("count", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, 500])
def test_half_a_reply_and_then_death(count):
    with talking() as (line, _), pytest.raises(ChannelError, match="ended before it was done"):
        line.ask(b"D", str(count).encode(), timeout_s=PATIENCE_S)


def test_half_a_reply_and_then_silence_is_late():
    half = pack(b"R", 1, b"x" * 100)[:50]
    with (
        talking() as (line, _),
        pytest.raises(ChannelTimeoutError, match=r"no reply within 0\.2 s"),
    ):
        line.ask(b"R", half, timeout_s=0.2)


def test_silence_is_late_and_leaving_is_not():
    with (
        talking() as (line, _),
        pytest.raises(ChannelTimeoutError, match=r"no reply within 0\.1 s"),
    ):
        line.ask(b"S", timeout_s=0.1)
    with talking() as (line, _), pytest.raises(ChannelError) as stop:
        line.ask(b"X", timeout_s=PATIENCE_S)
    assert not isinstance(stop.value, ChannelTimeoutError)


def test_one_that_reads_nothing_is_late_too():
    """More than a socket holds is sent to a process that is busy with something else."""
    with talking() as (line, process):
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(ChannelTimeoutError):
            line.ask(b"E", bytes(8 * 2**20), timeout_s=0.2)


def test_shutting_down_ends_the_wait_of_another_thread(monkeypatch):
    asked, take = threading.Event(), WorkerChannel._receive

    def take_when_asked(line, size):
        asked.set()
        return take(line, size)

    monkeypatch.setattr(WorkerChannel, "_receive", take_when_asked)
    with talking() as (line, process):
        told = []

        def wait():
            try:
                line.ask(b"S", timeout_s=PATIENCE_S)
            except ChannelError as error:
                told.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert asked.wait(PATIENCE_S)
        line.shut_down()
        waiting.join(PATIENCE_S)
        assert not waiting.is_alive()
        assert str(told[0]) == "it ended before it was done"
        process.terminate()


def test_a_worker_exits_when_its_channel_is_shut_down():
    with talking() as (line, process):
        line.shut_down()
        assert process.wait(PATIENCE_S) == 0


def test_our_copy_of_the_remote_end_is_closed_once_the_worker_has_it():
    with talking(greets=False) as (line, process):
        remote = line.remote
        line.wait_for_start(PATIENCE_S)
        os.fstat(remote)
        line.close_remote()
        with pytest.raises(OSError):
            os.fstat(remote)
        line.close_remote()  # once more does nothing
        process.kill()
        with pytest.raises(ChannelError):  # and so its end is seen
            line.ask(b"S", timeout_s=PATIENCE_S)


def test_closing_gives_both_descriptors_back():
    line = WorkerChannel()
    near = line._near.fileno()
    line.close()
    line.close()
    for number in (near, line.remote):
        with pytest.raises(OSError):
            os.fstat(number)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"", "ended before the first request"),
        (pack(b"G", 0), "ended before the first request"),
        (pack(b"H", 1), "ended before the first request"),
        (b"H", "ended before the first request"),
    ],
)
def test_a_worker_with_a_wrong_greeting_is_refused(said, message):
    line = WorkerChannel()
    if said:
        os.write(line.remote, said)
    line.close_remote()
    with pytest.raises(ChannelError, match=message):
        line.wait_for_start(PATIENCE_S)
    line.close()


def test_one_that_never_greets_is_late():
    line = WorkerChannel()
    with pytest.raises(ChannelTimeoutError, match="didn't start in time"):
        line.wait_for_start(0.05)
    line.close()


def test_a_request_has_a_number_of_its_own():
    line = WorkerChannel()
    remote = socket.socket(fileno=os.dup(line.remote))
    for number in (1, 2, 3):
        remote.sendall(pack(b"E", number))
        line.ask(b"E", timeout_s=PATIENCE_S)
        assert unpack_header(remote.recv(HEADER_BYTES)) == (b"E", number, 0)
    remote.close()
    line.close()


# -- talks: processes in a sandbox --


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Processes come and leave when they get the core."""
    monkeypatch.setattr(channels, "LEAVE_S", PATIENCE_S)
    for module in (channels, supply):
        monkeypatch.setattr(module, "START_S", PATIENCE_S)


def stages_of(tmp_path, *arms):
    slots = Slots(tmp_path, {"mod.py": PROGRAM})
    return {arm: slots.stage(slots.files) for arm in arms}


def command(stage, line, *, program="mod.py", timeout_s=PATIENCE_S):
    argv = ["{python}", "-I", "-S", str(stage.seen / program)]
    return stage.command(argv, timeout_s=timeout_s, line=line)


def hold_talk(stages, work, make=command):
    async def run():
        return await run_workers(stages, make, work)

    return anyio.run(run)


def test_a_talk_gives_what_the_work_gave_and_how_each_ended(tmp_path):
    def work(lines):
        return {arm: line.ask(b"P", timeout_s=PATIENCE_S).payload for arm, line in lines.items()}

    talked = hold_talk(stages_of(tmp_path, "base", "candidate"), work)
    assert len(set(talked.result.values())) == 2
    assert talked.failure is None
    assert {arm: (done.ending, done.exit_code) for arm, done in talked.done.items()} == {
        "base": (Ending.EXITED, 0),
        "candidate": (Ending.EXITED, 0),
    }
    assert talked.commands.keys() == {"base", "candidate"}


def test_a_failure_names_the_arm_and_how_it_ended(tmp_path):
    def work(lines):
        try:
            lines["candidate"].ask(b"X", timeout_s=PATIENCE_S)
        except ChannelError as error:
            raise ArmError("candidate", str(error), error) from None

    talked = hold_talk(stages_of(tmp_path, "base", "candidate"), work)
    assert (talked.failure.arm, is_late(talked.failure)) == ("candidate", False)
    assert talked.done["candidate"].exit_code == 7
    assert talked.done["base"].exit_code == 0


def test_one_that_does_not_leave_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(channels, "LEAVE_S", 0.05)

    def work(lines):
        try:
            lines["candidate"].ask(b"S", timeout_s=0.1)
        except ChannelError as error:
            raise ArmError("candidate", str(error), error) from None

    talked = hold_talk(stages_of(tmp_path, "candidate"), work)
    assert is_late(talked.failure)
    assert talked.done == {}


@pytest.mark.parametrize("program", ["missing.py", "silent.py"])
def test_a_worker_that_exits_before_its_greeting_is_a_failure(tmp_path, program):
    stages = stages_of(tmp_path, "base")
    (stages["base"].slot / "silent.py").write_text("raise SystemExit('no')")
    talked = hold_talk(stages, lambda lines: 1, partial(command, program=program))
    assert talked.result is None
    assert (talked.failure.arm, is_late(talked.failure)) == ("base", False)
    assert talked.done["base"].exit_code != 0


def test_a_mistake_of_the_work_is_raised_as_it_is(tmp_path):
    with pytest.raises(ZeroDivisionError):
        hold_talk(stages_of(tmp_path, "base"), lambda lines: 1 // 0)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="nothing can be pinned here")
def test_a_thread_that_kept_away_gets_its_cores_back():
    mine = os.sched_getaffinity(0)
    core = max(mine)
    seen = []

    def fail():
        seen.append(os.sched_getaffinity(0))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), keeping_away([core]):
        fail()
    assert seen == [mine - {core} or mine]
    assert os.sched_getaffinity(0) == mine
    with keeping_away(sorted(mine)):  # nowhere else to go
        assert os.sched_getaffinity(0) == mine
    with keeping_away(()):
        assert os.sched_getaffinity(0) == mine


# -- the supplier --

MAKERS = """
    import os, time
    def pair(rng):
        return (rng.random(), rng.randrange(9)), {"name": "x"}
    def large(rng):
        return ("x" * rng.randrange(375_000, 437_500),), {}
    def wrong(rng):
        return 5
    def raises(rng):
        raise KeyError("no such thing")
    def leaves(rng):
        os._exit(3)
    def hangs(rng):
        time.sleep(1000)
"""


def supply_with(tmp_path, function, work, file="make.py"):
    slot = tmp_path / "slot"
    slot.mkdir(exist_ok=True)
    (slot / "make.py").write_text(dedent(MAKERS))
    benchmark = Benchmark("b", "mod:f", f"{file}:{function}")
    problem = CodeProblem("p", check=(Check(command=("true",)),), bench=(benchmark,))
    stage = Stage(problem, PYTHON, Slots(tmp_path, {}).sandbox, slot, slot, (".",))

    async def run():
        with anyio.fail_after(PATIENCE_S):
            async with open_supplier(benchmark, stage) as supplier:
                return await work(supplier)

    return anyio.run(run)


def test_a_seed_gives_the_same_inputs_always_and_another_gives_others(tmp_path):
    async def work(supplier):
        return [
            await supplier.make(seed, count) for seed, count in (("a", 40), ("a", 7), ("b", 40))
        ]

    first, again, other = supply_with(tmp_path, "pair", work)
    assert len(first) == len(set(first)) == 40
    assert again == first[:7]
    assert not set(first) & set(other)


def test_inputs_do_not_depend_on_the_portions_they_come_in(tmp_path, monkeypatch):
    async def work(supplier):
        whole = await supplier.make("a", 40)
        monkeypatch.setattr(supply, "PORTION_BYTES", 200)
        return whole, await supplier.make("a", 40)

    whole, portions = supply_with(tmp_path, "pair", work)
    assert whole == portions


def test_all_inputs_of_a_session_may_be_larger_than_one_reply(tmp_path, monkeypatch):
    monkeypatch.setattr(line_module, "LARGEST_REPLY", 2**20)
    monkeypatch.setattr(supply, "PORTION_BYTES", supply.PORTION_BYTES // 16)

    async def work(supplier):
        return await supplier.make("a", 4)

    made = supply_with(tmp_path, "large", work)
    assert len(made) == 4
    assert sum(map(len, made)) > 2**20


@pytest.mark.parametrize(
    ("function", "file", "words"),
    [
        ("wrong", "make.py", "make.py:wrong"),
        ("raises", "make.py", "KeyError: 'no such thing'"),
        ("missing", "make.py", "missing"),
        ("pair", "other.py", "other.py"),
        ("leaves", "make.py", "the process that makes inputs is gone"),
    ],
)
def test_a_maker_that_fails_is_reported_with_its_name(tmp_path, function, file, words):
    async def work(supplier):
        return await supplier.make("a", 3)

    with pytest.raises(StudyError, match=words) as stop:
        supply_with(tmp_path, function, work, file)
    assert "bench" in str(stop.value)
    assert "make(rng)" in str(stop.value)


def test_a_maker_that_hangs_is_reported_in_time(tmp_path):
    async def work(supplier):
        object.__setattr__(supplier, "timeout_s", 0.2)
        return await supplier.make("a", 3)

    with pytest.raises(StudyError, match=r"took longer than 0\.2 s"):
        supply_with(tmp_path, "hangs", work)


def test_a_supplier_that_is_killed_meanwhile_is_reported(tmp_path):
    async def work(supplier):
        await supplier.make("a", 3)
        os.kill(pid_of(supplier.channel), signal.SIGKILL)
        return await supplier.make("b", 3)

    with pytest.raises(StudyError, match="the process that makes inputs is gone"):
        supply_with(tmp_path, "pair", work)

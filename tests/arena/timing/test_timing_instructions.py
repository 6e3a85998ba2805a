"""Instruction counts, mostly with a fake valgrind."""

import json
import os
import shutil
import sys
import threading
from contextlib import nullcontext
from dataclasses import replace
from itertools import count as count_up
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from arena_fault_kit import WORKING
from click.testing import CliRunner
from clock_kit import FASTER, FILES, MODULE, few, few_changes, few_problem, open_site
from repository_kit import make_repository

from fairtrial.arena import (
    ArenaSettings,
    Benchmark,
    Estimate,
    Measurement,
    Pair,
    Timing,
    Verdict,
    compare_candidates,
    describe_measurement,
    evaluate_candidates,
    machine_survey,
)
from fairtrial.arena.model.plain_data import measured_as_dict
from fairtrial.arena.timing import instruction_counts as instructions, valgrind
from fairtrial.arena.timing.calibration import Pace
from fairtrial.arena.timing.command_benchmark import CommandSubject, ProcessBenchmark
from fairtrial.arena.timing.inputs import InputSupplier
from fairtrial.arena.timing.instruction_comparison import (
    add_counts,
    add_instruction_counts,
    explain_contradiction,
)
from fairtrial.arena.timing.instruction_counts import (
    InstructionCount,
    choose_calls,
    needed_s,
    prepare_counter,
)
from fairtrial.arena.timing.measurement_text import describe_instructions
from fairtrial.arena.timing.valgrind import (
    FORKS,
    NO_COUNT,
    CountError,
    Valgrind,
    find_valgrind,
    read_logs,
    read_total,
    read_totals,
)
from fairtrial.cli import compare, evaluate
from fairtrial.core import LabError, StudyError
from fairtrial.sandbox import Command, HostLock, Limits, Mount, View

needs_valgrind = pytest.mark.skipif(
    sys.platform == "darwin" or shutil.which("valgrind") is None, reason="no valgrind here"
)
# Speaks as valgrind does. Counts a million for the start, for each call 100 for each time that the
# module in the slot goes round, and something that depends on the inputs.
FAKE = """#!{python} -IS
import os, sys, zlib
options = [each for each in sys.argv[1:] if each.startswith("--")]
program = sys.argv[1 + len(options):]
(log,) = [each.partition("=")[2] for each in options if each.startswith("--log-f")]
assert os.environ["PYTHONHASHSEED"] == "0"
with open("src/few.py") as file:
    times = int(file.read().rpartition("range(")[2].partition(")")[0])
said = os.dup(int(log))
given = sys.stdin.buffer.read()
job, _, inputs = given.partition(b"\\n")
calls = int(job.partition(b'"calls":')[2].rstrip(b"}}").partition(b",")[0])
ours, theirs = os.pipe()
child = os.fork()
if child == 0:
    os.dup2(ours, 0)
    os.execv(program[0], program)
os.write(theirs, given)
os.close(theirs)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
total = 1_000_000 + calls * (100 * times + zlib.crc32(inputs) % 1000)
head = "==7== Cachegrind, a cache profiler\\n==7== Command: python\\n==7== \\n"
os.write(said, f"{{head}}==7== I   refs:      {{total:,}}\\n".encode())
os._exit(code)
"""
# One that runs nothing, says what a test wants it to say of so many calls, and is quick.
MUTE = r"""#!/bin/sh
for option; do
    case $option in
        --log-fd=*) exec 9>"/dev/fd/${{option#*=}}" ;;
        --log-file=*) logs=${{option#*=}}; logs=${{logs%/*}}; exec 9>"$logs/7.1" ;;
    esac
done
calls=$(sed -n '1s/.*"calls":\([0-9]*\).*/\1/p')
echo '==7== Cachegrind, a cache profiler' >&9
{deed}
"""


def write_fake(folder, deed=None):
    """A program of that name, in a folder that can be put on the PATH."""
    program = folder / "bin" / "valgrind"
    program.parent.mkdir(parents=True, exist_ok=True)
    text = FAKE if deed is None else MUTE
    program.write_text(text.format(python=sys.executable, deed=deed))
    program.chmod(0o755)
    return program


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A bench on the tiny project; where there is a sandbox, in it."""
    with open_site(tmp_path_factory.mktemp("site")) as site:
        (placed,) = site.bench.benchmarks
        # How many calls are counted follows from this: the same however busy the machine is.
        steady = replace(placed.benchmark.pace, call_s=0.01, turn_s=1e-4, load_s=0.02, start_s=0.1)
        placed = replace(placed, benchmark=replace(placed.benchmark, pace=steady))
        site.bench = replace(site.bench, benchmarks=(placed,))
        yield site


@pytest.fixture
def count(site, tmp_path, monkeypatch):
    """The counts of some versions of the tiny project, by a valgrind that does a deed."""

    def count(*texts, deed=None, budget_s=60.0, benchmark=None):
        program = write_fake(tmp_path, deed)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        counting = site.call(prepare_counter, site.bench, find_valgrind(), {"squares": 0.01})
        resources = site.bench.resources
        problem = replace(resources.problem, budget_s=budget_s)
        bench = replace(site.bench, resources=replace(resources, problem=problem))
        if benchmark is not None:
            bench = replace(bench, benchmarks=(replace(bench.benchmarks[0], benchmark=benchmark),))
        counting = replace(counting, bench=bench)
        given = [None if text is None else few_changes(text) for text in texts]
        return [site.call(counting.count, changes)["squares"] for changes in given]

    return count


# -- what valgrind says --


@pytest.mark.parametrize(
    ("log", "total"),
    [
        (b"==1== Cachegrind\n==1== \n==1== I   refs:      2,377,393,532\n", 2_377_393_532),
        (b"==22== I refs:        17\n", 17),  # as newer ones write it
    ],
)
def test_a_total_is_read(log, total):
    assert read_total(log) == total


@pytest.mark.parametrize(
    "log",
    [
        b"",
        b"\0\xff garbage",
        b"==1== I   refs:      many\n",
        b"I   refs:      17\n",
        b"==1== I   refs:      17 or so\n",
        b"==1== I   refs:      " + 5_000 * b"9" + b"\n",
        b"==1== D   refs:      17\n",
    ],
)
def test_what_is_no_total_is_none(log):
    with pytest.raises(CountError, match=NO_COUNT):
        read_total(log)


def test_two_totals_of_one_process_are_none():
    with pytest.raises(CountError, match="it forks"):
        read_total(b"==1== I   refs:      17\n==2== I   refs:      17\n")


def test_the_programs_of_a_command_are_added_up():
    logs = {
        "7.1": b"==7== I   refs:      1,000\n",
        "8.2": b"==8== Cachegrind\n",  # a copy that became a program
        "8.1": b"==8== I   refs:      500\n",
    }
    assert read_totals(logs) == 1_500
    with pytest.raises(CountError, match="it forks"):
        read_totals({**logs, "9.2": b"==9== I   refs:      1,001\n"})
    with pytest.raises(CountError, match=NO_COUNT):
        read_totals({**logs, "9.1": b"==9== Killed\n"})
    with pytest.raises(CountError, match=NO_COUNT):
        read_totals({})


def test_under_valgrind_a_command_has_more_memory_and_all_else_as_it_was():
    slot = Mount(Path("/slot"), Path("/tree"))
    plain = Command(
        ("python", "x"), Path("/tree"), {"A": "1"}, View((slot,)), Limits(100, 3, 7), 1.0
    )
    program = Path("/far/bin/valgrind")
    counted = Valgrind(program, (program,)).wrap(plain, 9.0)
    assert str(program) in counted.argv
    assert counted.argv[-2:] == plain.argv
    assert counted.limits == Limits(712, 3, 7)
    assert not counted.limits.network
    assert counted.view == View((slot, Mount(program, program)))
    assert counted.timeout_s == 9.0
    assert (counted.cwd, counted.env, counted.cores) == (plain.cwd, plain.env, ())
    logs = Path("/logs")
    both = Valgrind(program).wrap_with_children(plain, 9.0, logs)
    assert both.view == View((slot,), (Mount(logs, logs),))
    assert "--trace-children=yes" in both.argv
    assert "--trace-children=yes" not in counted.argv


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_log_is_no_count_and_nothing_stays_open(tmp_path, kind):
    (tmp_path / "7.1").write_bytes(b"==7== I   refs:      17\n")
    assert read_totals(read_logs(tmp_path)) == 17
    make = {
        "folder": Path.mkdir,
        "link": lambda path: path.symlink_to(tmp_path / "7.1"),
        "pipe": os.mkfifo,
    }
    make[kind](tmp_path / "8.1")
    with pytest.raises((CountError, OSError)):
        read_logs(tmp_path)
    assert not find_open([tmp_path, *tmp_path.iterdir()])
    with (tmp_path / "7.1").open() as file:
        assert find_open([tmp_path / "7.1"]) == [file.fileno()]


def find_open(paths):
    """The descriptors of this process that any of these files has."""
    known = [(status.st_dev, status.st_ino) for status in map(os.lstat, paths)]
    return [number for number in range(4096) if identify(number) in known]


def identify(number):
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def test_a_folder_without_end_is_not_read_to_its_end(tmp_path, monkeypatch):
    entries = (SimpleNamespace(name=f"{number}.1") for number in count_up())
    monkeypatch.setattr(valgrind.os, "scandir", lambda folder: nullcontext(entries))
    with pytest.raises(CountError, match="more than 4,096 programs"):
        read_logs(tmp_path)
    assert next(entries).name == f"{valgrind.MOST_LOGS + 1}.1"


@pytest.mark.parametrize(("sizes", "is_loud"), [([9, 9, 9], False), ([11], True), ([9] * 4, True)])
def test_logs_may_be_so_long_each_and_together(tmp_path, monkeypatch, sizes, is_loud):
    monkeypatch.setattr(valgrind, "LOG_BYTES", 10)
    monkeypatch.setattr(valgrind, "ALL_LOGS_BYTES", 30)
    for number, size in enumerate(sizes):
        (tmp_path / f"{number}.1").write_bytes(bytes(size))
    with pytest.raises(CountError, match="too large") if is_loud else nullcontext():
        assert len(read_logs(tmp_path)) == len(sizes)


# -- whether there is one --


def test_without_valgrind_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StudyError, match=r"needs valgrind.*install it: .*install valgrind") as told:
        find_valgrind()
    assert len(str(told.value).splitlines()) == 1
    fact = machine_survey.survey_valgrind()
    assert (fact.name, fact.status) == ("instruction counts", "no")
    assert "install valgrind" in fact.remedy


def test_on_macos_the_error_says_that_it_does_not_run_there(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(StudyError, match="valgrind doesn't run on macOS"):
        find_valgrind()
    assert "macOS" in machine_survey.survey_valgrind().detail


def test_one_that_sandboxes_do_not_show_is_shown_and_nothing_beside_it(monkeypatch, tmp_path):
    program = write_fake(tmp_path)
    (tmp_path / "libexec" / "valgrind").mkdir(parents=True)
    (tmp_path / "secret").touch()
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_valgrind() == Valgrind(program, (program, tmp_path / "libexec/valgrind"))
    monkeypatch.setattr(valgrind.system, "system_mounts", lambda network: ((str(tmp_path),) * 2,))
    assert find_valgrind() == Valgrind(program)


@pytest.mark.parametrize(
    ("script", "status", "detail"),
    [("echo valgrind-9.9", "yes", "valgrind-9.9, for --instructions"), ("exit 3", "no", "")],
)
def test_doctor_tries_it(monkeypatch, tmp_path, script, status, detail):
    program = tmp_path / "valgrind"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    fact = machine_survey.survey_valgrind()
    assert fact.status == status
    assert fact.detail == detail if detail else "can't be used" in fact.detail


@pytest.mark.parametrize(
    ("module", "arguments"), [(evaluate, ["c.diff"]), (compare, ["base", "c.diff"])]
)
def test_without_valgrind_nothing_is_run(monkeypatch, tmp_path, module, arguments):
    def run(*given):
        raise AssertionError("something was run")

    (tmp_path / "p.yaml").write_text(
        'problem_id: x\neditable: ["*.py"]\ncheck:\n  - command: ["true"]\n'
    )
    (tmp_path / "c.diff").write_text("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-1\n+2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "run_interruptible", run)
    given = ["p.yaml", *arguments, "--instructions"]
    done = CliRunner().invoke(module.command, given, standalone_mode=False)
    assert isinstance(done.exception, StudyError)
    assert done.exception.exit_code == 2
    assert "needs valgrind" in str(done.exception)


def test_only_timed_candidates_are_counted(monkeypatch, tmp_path):
    (tmp_path / "p.yaml").write_text(
        'problem_id: x\neditable: ["*.py"]\ncheck:\n  - command: ["true"]\n'
    )
    given = [str(tmp_path / "p.yaml"), "--instructions", "--check-only"]
    done = CliRunner().invoke(evaluate.command, given, standalone_mode=False)
    assert isinstance(done.exception, StudyError)
    assert "--check-only times none" in str(done.exception)


# -- how many calls --


def pace(call_s, *, turn_s=0.0, start_s=0.1, input_bytes=100.0):
    return Pace(call_s, turn_s, 1e-5, 0.0, input_bytes, {}, start_s=start_s)


@pytest.mark.parametrize(
    ("given", "calls"),
    [
        (pace(1e-3), 50),
        (pace(1e-9), 20_000),
        (pace(0.1), 1),
        (pace(0.1, start_s=1.45), 0),  # 58 s to start, and 60 s are there
        (pace(5.0), 0),
        (pace(1e-3, turn_s=0.05), 13),
        (pace(1e-3, input_bytes=2**20), 12),
    ],
)
def test_the_number_of_calls_follows_from_how_long_one_takes(given, calls):
    assert choose_calls(given, 60.0) == calls
    assert calls == 0 or needed_s(given, calls) <= 60.0


def test_what_takes_too_long_is_not_begun(site):
    counting = site.call(prepare_counter, site.bench, Valgrind(Path("/no/such")), {"squares": 9.0})
    counts = site.call(counting.count, None)
    assert counts["squares"].instructions is None
    told = "one call takes 9 s, which is about 725 s under valgrind, and 180 s"
    assert counts["squares"].why_not.startswith(told)
    assert "3 times budget_s" in counts["squares"].why_not


# -- counting, with real workers in real sandboxes --


def test_only_calls_are_counted_on_the_same_inputs_beside_others(count, monkeypatch):
    def refuse(self, **given):
        raise AssertionError("the host is asked for as if something were timed")

    monkeypatch.setattr(HostLock, "exclusive", refuse)
    base, candidate = count(None, FASTER)
    of_inputs = base.instructions - 100 * 40  # and nothing of the million for the start
    assert 0 <= of_inputs < 1000
    assert candidate == InstructionCount(100 * 10 + of_inputs)


@pytest.mark.parametrize(
    ("deed", "why"),
    [
        ("echo no such tool >&2; exit 1", "under valgrind it exited with 1: no such tool"),
        ("exit 0", NO_COUNT),
        ("echo '==7== I   refs:      none' >&9", NO_COUNT),
        ('for pid in 7 8; do echo "==$pid== I   refs:      5" >&9; done', FORKS),
        (
            'echo "==7== I   refs:      $((2000000 - calls))" >&9',
            "the counts contradict each other",
        ),
        ("head -c 300000 /dev/zero >&9", "valgrind's log is too large"),
        (
            "echo 'vex: unhandled instruction bytes: 0x62' >&9; kill -ABRT $$",
            "valgrind doesn't know an instruction that it uses",
        ),
    ],
)
def test_where_there_is_no_count_it_is_said_why(count, deed, why):
    (found,) = count(None, deed=deed)
    assert found.instructions is None
    assert why in found.why_not


def test_what_hangs_is_given_up(count):
    (found,) = count(None, deed="exec sleep 1000", budget_s=0.1)
    assert found == InstructionCount(why_not="it took longer than 0.3 s under valgrind")


def test_what_a_command_leaves_among_the_logs_costs_its_count_only(count, site, monkeypatch):
    readers = []

    def read(logs):
        readers.append(threading.get_ident())
        return read_logs(logs)

    async def loop():
        return threading.get_ident()

    monkeypatch.setattr(instructions, "read_logs", read)
    benchmark = ProcessBenchmark("squares", CommandSubject("squares", ("true",), 60.0), 0.1)
    deep = "/".join(["d"] * 1100)
    told = "echo '==7== I   refs:      1,200' >&9"
    leave = f"cd $logs; mkdir 9.1; cd 9.1; mkdir -p {deep}; chmod 0 $logs/9.1"
    left, clean = (
        count(None, deed=deed, benchmark=benchmark) for deed in (f"{told}; {leave}", told)
    )
    assert left[0].instructions is None
    assert "among the logs" in left[0].why_not or "Permission" in left[0].why_not
    assert clean == [InstructionCount(1200.0)]
    assert site.call(loop) not in readers
    slots = site.call(find_slots, site.bench.resources)
    assert not [path for slot in slots for path in slot.parent.glob("counts-*")]


async def find_slots(resources):
    async with resources.pool.acquire() as slot:
        return [slot.path]


def test_a_candidate_has_no_descriptor_that_the_count_comes_on(count):
    listing = MODULE.replace(
        "def squares",
        "import os\nopened = [os.readlink(f'/proc/self/fd/{fd}') for fd in range(3, 99)\n"
        "    if os.path.exists(f'/proc/self/fd/{fd}')]\n"
        "assert not any(each.startswith('pipe') for each in opened), opened\n\ndef squares",
    )
    (found,) = count(listing)
    assert found.why_not == ""


def test_what_was_counted_before_timing_stopped_it_is_kept(site, monkeypatch):
    counting = site.call(prepare_counter, site.bench, Valgrind(Path("/none")), {"squares": 0.05})
    version, asked = instructions._VersionCount(counting), []

    async def run(self, job, stage):
        asked.append(json.loads(job.partition(b"\n")[0])["calls"])
        if len(asked) == 2:
            raise InterruptedCountError
        return 1000 * asked[-1]

    async def count():
        async with site.bench.resources.pool.acquire() as slot:
            return await version.count(None, slot)

    monkeypatch.setattr(instructions._VersionCount, "_run_calls", run)
    with pytest.raises(InterruptedCountError):
        site.call(count)
    assert site.call(count) == {"squares": InstructionCount(1000.0)}
    assert asked == [1, 2, 2]
    version.tries = instructions.MOST_TRIES
    with pytest.raises(CountError, match="interrupted too often"):
        site.call(count)


class InterruptedCountError(Exception):
    """What takes the place of a cancellation."""


@pytest.mark.parametrize("error", [StudyError("the maker fails"), OSError("the maker fails")])
def test_what_can_not_be_made_ready_costs_that_count_and_no_verdict(site, monkeypatch, error):
    make = InputSupplier.make

    async def refuse(self, seed, number):
        if seed.endswith("/instructions/other"):
            raise error
        return await make(self, seed, number)

    async def run(self, job, stage):
        return 500 * json.loads(job.partition(b"\n")[0])["calls"]

    monkeypatch.setattr(InputSupplier, "make", refuse)
    monkeypatch.setattr(instructions._VersionCount, "_run_calls", run)
    (placed,) = site.bench.benchmarks
    named = replace(placed.benchmark, benchmark=replace(placed.benchmark.benchmark, name="other"))
    bench = replace(site.bench, benchmarks=(replace(placed, benchmark=named), placed))
    before = measured(1.4)
    timings = [replace(before.timings[0], benchmark=item) for item in ("other", "squares")]
    before = replace(before, timings=tuple(timings))
    timed = {"a": (few_changes(MODULE), before)}
    after = site.call(add_instruction_counts, bench, Valgrind(Path("/none")), None, timed)["a"]
    assert replace(after, timings=before.timings) == before
    other, squares = after.timings
    told = "instructions are not counted: the maker fails"
    assert other == replace(timings[0], notes=("old", told))
    assert squares.instructions == Pair(500.0, 500.0)


def test_a_lock_that_can_not_be_used_costs_all_counts_and_no_verdict(site):
    class NoLock:
        def shared(self):
            raise LabError("no lock here")

    bench = replace(site.bench, resources=replace(site.bench.resources, lock=NoLock()))
    before = measured(1.4)
    before = replace(before, timings=(replace(before.timings[0], benchmark="squares"),))
    timed = {"a": (few_changes(MODULE), before)}
    after = site.call(add_instruction_counts, bench, Valgrind(Path("/none")), None, timed)["a"]
    assert replace(after, timings=before.timings) == before
    assert after.timings[0].notes[1:] == ("instructions are not counted: no lock here",)


# -- beside the verdict --


def measured(ratio, **others):
    estimate = Estimate(ratio, ratio / 1.01, ratio * 1.01, 6, 0.95)
    timing = Timing("b", Verdict.FASTER, estimate, notes=("old",))
    return Measurement(Verdict.FASTER, estimate, adopt=True, timings=(timing,), **others)


def test_counts_stand_beside_the_verdict_and_change_nothing_of_it():
    before = measured(1.4)
    after = add_counts(
        before, {"b": InstructionCount(1320.0)}, {"b": InstructionCount(1000.0)}, 0.02
    )
    (timing,) = after.timings
    assert timing == replace(before.timings[0], instructions=Pair(1320.0, 1000.0))
    assert replace(after, timings=before.timings) == before
    told = measured_as_dict(after)["instructions"]
    assert told == {"b": {"base": 1320.0, "candidate": 1000.0, "ratio": 1.32}}
    assert (
        "instructions: 1.32x fewer (1,000, the base 1,320)" in describe_measurement(after).remarks
    )
    assert measured_as_dict(before)["instructions"] == measured_as_dict(None)["instructions"] == {}


@pytest.mark.parametrize(
    ("base", "candidate", "note"),
    [
        (InstructionCount(why_not="it forks"), InstructionCount(7.0), "the base: it forks"),
        (InstructionCount(7.0), InstructionCount(why_not="it hangs"), "it hangs"),
        (InstructionCount(why_not="too long"), InstructionCount(why_not="too long"), "too long"),
    ],
)
def test_where_there_is_no_count_there_is_a_note(base, candidate, note):
    (timing,) = add_counts(measured(1.4), {"b": base}, {"b": candidate}, 0.02).timings
    assert timing.instructions is None
    assert timing.notes == ("old", f"instructions are not counted: {note}")


@pytest.mark.parametrize(
    ("speedup", "fewer", "told"),
    [
        (1.5, 0.7, "it is faster, but executes more instructions"),
        (0.7, 1.5, "it is slower, but executes fewer instructions"),
        (1.5, 1.5, ""),
        (0.7, 0.7, ""),
        (1.01, 0.7, ""),  # below the minimum effect nothing is told apart
        (1.5, 0.99, ""),
        (0.99, 1.5, ""),
    ],
)
def test_contradicting_counts_get_a_note_with_possible_causes(speedup, fewer, told):
    found = add_counts(
        measured(speedup),
        {"b": InstructionCount(1000 * fewer)},
        {"b": InstructionCount(1000.0)},
        0.02,
    )
    said = explain_contradiction(found.timings[0], 0.02)
    assert said.startswith(told) if told else said == ""
    assert found.timings[0].notes == (("old", said) if told else ("old",))
    if told:
        assert "cache misses" in said
        assert "waiting" in said


def test_a_benchmark_without_an_interval_contradicts_nothing():
    timing = Timing("b", Verdict.INCONCLUSIVE, None, instructions=Pair(1.0, 9.0))
    assert explain_contradiction(timing, 0.02) == ""


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        (Pair(1000.0, 2000.0), "instructions: 2.00x more (2,000, the base 1,000)"),
        (Pair(1001.0, 1000.0), "instructions: as many, to 1 % (1,000, the base 1,001)"),
        (Pair(35.0e6, 1.0e6), "instructions: 35.0x fewer (1,000,000, the base 35,000,000)"),
    ],
)
def test_counts_as_people_read_them(pair, text):
    assert describe_instructions(pair) == text


@pytest.mark.slow
def test_evaluate_and_compare_count_if_asked_to(tmp_path, monkeypatch):
    top = make_repository(tmp_path / "repo", FILES)
    (tmp_path / "locks").mkdir()
    program = write_fake(tmp_path)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    problem = few_problem(top, sandbox="auto" if WORKING else "plain")
    settings = ArenaSettings(
        unsandboxed=not WORKING, warm=False, lock_folder=tmp_path / "locks", instructions=True
    )
    given = [
        few("faster", FASTER),
        few("again", FASTER + "# the same"),
        few("wrong", "squares = 1"),
    ]

    async def run():
        evaluation = await evaluate_candidates(problem, given, settings=settings)
        return evaluation, await compare_candidates(problem, given[0], "base", settings=settings)

    evaluation, comparison = anyio.run(run)
    told = [item["instructions"] for item in evaluation.as_dict()["candidates"]]
    assert told[0] == told[1] != {}
    assert 2.5 < told[0]["squares"]["ratio"] <= 4
    assert told[2] == {}
    assert [judgement.verdict for judgement in evaluation.judgements][:2] == [Verdict.FASTER] * 2
    assert comparison.measurement.verdict == Verdict.SLOWER
    (timing,) = comparison.measurement.timings
    assert timing.instructions.base < timing.instructions.candidate


# -- with the real one --


@needs_valgrind
@pytest.mark.slow
def test_real_counts_are_the_same_every_time_and_have_nothing_of_the_start_in_them(site):
    counting = site.call(prepare_counter, site.bench, find_valgrind(), {"squares": 0.01})
    heavy = "import decimal, sqlite3\nX = [str(n) for n in range(20_000)]\n" + MODULE
    base, again, faster, later = (
        site.call(counting.count, text and few_changes(text))["squares"]
        for text in (None, None, FASTER, heavy)
    )
    assert base.why_not == ""
    assert base.instructions == pytest.approx(again.instructions, rel=1e-4)
    assert base.instructions / faster.instructions == pytest.approx(4.0, rel=0.1)
    # Starting alone takes some ten times as many; where things lie makes a difference of per cents.
    assert later.instructions == pytest.approx(base.instructions, rel=0.1)


@needs_valgrind
@pytest.mark.slow
def test_real_counts_of_commands_have_all_programs_in_them_but_no_copies(tmp_path):
    inner = "import few; print(few.squares(range(200)))"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    forks = "import os; p = os.fork() or os._exit(0); os.waitpid(p, 0)"
    bench = tuple(
        Benchmark(name, command=("{python}", "-c", text))
        for name, text in (("outer", outer), ("forks", forks))
    )
    many = few_changes(MODULE.replace("range(40)", "range(4000)"))
    with open_site(tmp_path, bench=bench) as site:
        counting = site.call(prepare_counter, site.bench, find_valgrind(), {})
        base = site.call(counting.count, None)
        candidate = site.call(counting.count, many)
    more = candidate["outer"].instructions - base["outer"].instructions
    assert more > 3960 * 200 * 10  # the program that it starts goes round so many times more
    assert base["forks"] == candidate["forks"] == InstructionCount(why_not=FORKS)


@needs_valgrind
@pytest.mark.slow
def test_a_call_that_forks_is_not_counted(site):
    counting = site.call(prepare_counter, site.bench, find_valgrind(), {"squares": 0.05})
    forking = MODULE.replace(
        "    return",
        "    import os\n    pid = os.fork() or os._exit(0)\n    os.waitpid(pid, 0)\n    return",
    )
    assert site.call(counting.count, few_changes(forking))["squares"] == InstructionCount(
        why_not=FORKS
    )


@needs_valgrind
@pytest.mark.slow
def test_candidates_are_counted_side_by_side(site):
    found = measured(2.0)
    timings = (replace(found.timings[0], benchmark="squares", base_s=0.05),)
    texts = {"a": FASTER, "b": MODULE}
    timed = {
        name: (few_changes(text), replace(found, timings=timings)) for name, text in texts.items()
    }
    found = site.call(add_instruction_counts, site.bench, find_valgrind(), None, timed)
    pairs = {name: each.timings[0].instructions for name, each in found.items()}
    assert pairs["a"].base == pairs["b"].base == pytest.approx(4 * pairs["a"].candidate, rel=0.1)
    assert pairs["b"].candidate == pytest.approx(pairs["b"].base, rel=0.1)

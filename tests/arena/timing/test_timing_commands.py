"""Timed commands: pairs of fresh processes whose output must equal the base's."""

import binascii
import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest
from suite_kit import PYTHON

from fairtrial.arena import Benchmark, Check, CodeProblem, Pair, Reason
from fairtrial.arena.interpreter import probe_interpreter
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing import command_benchmark as pairs
from fairtrial.arena.timing.command_benchmark import compare_outputs, prepare_command_benchmark
from fairtrial.arena.timing.input_files import InputFiles
from fairtrial.arena.timing.inputs import open_supplier
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.core import LabError, MisfitError, StudyError
from fairtrial.sandbox import Captured, Completed, Ending, Plain, find_sandbox
from fairtrial.sandbox.harness import watcher as watch

BENCHMARK = Benchmark("cli", command=("{python}", "-m", "tool", "big.txt"))
SAME_INPUT = pairs.describe_same_input(BENCHMARK)
PROBLEM = CodeProblem("p", check=(Check(command=("true",)),))


def ended(out=b"42\n", code=0, *, wall_s=0.25, ending=Ending.EXITED, dropped=0, err=b""):
    """What came of a process."""
    return Completed(
        ending=ending,
        exit_code=code if ending == Ending.EXITED else None,
        signal=11 if ending == Ending.SIGNALLED else None,
        stdout=Captured(out, b"", dropped),
        stderr=Captured(err),
        channel=b"",
        channel_overflowed=False,
        wall_s=wall_s,
        cpu_s=wall_s / 2,
        peak_rss_mb=wall_s * 100,
    )


@dataclass
class Scripted:
    """A sandbox in which base and candidate do what a test says, run by run, and take that long."""

    scripts: dict[str, list[Completed]]
    clock_s: float = 0.0
    around_s: float = 0.05
    commands: list = field(default_factory=list)
    name: str = "scripted"
    relocates: bool = True
    shortfalls: tuple = ()

    async def run(self, command):
        arm = command.view.readable[-1].source.name
        self.commands.append((arm, command))
        script = self.scripts[arm]
        done = script.pop(0) if len(script) > 1 else script[0]
        self.clock_s += done.wall_s + self.around_s
        return done

    def monotonic(self):
        return self.clock_s

    def setup(self, *, problem=PROBLEM, cores=(1,), seen="/project"):
        base, candidate = (
            Stage(problem, PYTHON, self, Path("/slots", arm), Path(seen.format(arm)), (".",))
            for arm in ("base", "candidate")
        )
        return TimingSetup(
            replace(base, is_writable=False), replace(candidate, is_writable=False), cores, "secret"
        )


@pytest.fixture
def script(monkeypatch):
    """Makes a scripted sandbox whose clock is the only one."""

    def script(*, base=(), candidate=()):
        sandbox = Scripted({"base": [*base, ended()], "candidate": [*candidate, ended()]})
        monkeypatch.setattr(pairs, "time", sandbox)
        return sandbox

    return script


def prepare(setup, *, budget_s=20.0, **more):
    async def work():
        return await prepare_command_benchmark(BENCHMARK, setup, budget_s=budget_s, **more)

    return anyio.run(work)


def time_once(sandbox, number=0):
    """A session after the base was prepared with whatever the script has first."""
    setup = sandbox.setup()
    return anyio.run(prepare(setup).run, setup, number)


def test_a_session_is_one_pair_of_processes_on_the_asked_cores(script):
    sandbox = script(candidate=[ended(wall_s=0.2)])
    session = time_once(sandbox, number=3)
    assert (session.benchmark, session.number, session.rejection) == ("cli", 3, None)
    assert Counter(sample.arm for sample in session.samples) == {"base": 1, "candidate": 1}
    assert [sample.position for sample in session.samples] == [0, 1]
    assert all(s.is_kept and s.round == 0 and s.calls == 1 for s in session.samples)
    assert {s.arm: (s.wall_s, s.cpu_s) for s in session.samples} == {
        "base": (0.25, 0.125),
        "candidate": (0.2, 0.1),
    }
    assert session.peak_rss_mb == Pair(25.0, 20.0)
    assert session.seconds == pytest.approx(0.55)
    assert session.startup_s is session.outside_s is session.materializing is None
    assert [arm for arm, _ in sandbox.commands[-2:]] == [s.arm for s in session.samples]
    assert all(command.cores == (1,) for _, command in sandbox.commands)
    assert sandbox.commands[-1][1].argv[1:] == ("-m", "tool", "big.txt")


def test_the_first_arm_is_random_and_reproducible(script):
    sandbox = script()
    setup = sandbox.setup()
    benchmark = prepare(setup)

    def first_arms(setup):
        sessions = [anyio.run(benchmark.run, setup, number) for number in range(40)]
        return [session.samples[0].arm for session in sessions]

    arms = first_arms(setup)
    assert 10 <= arms.count("base") <= 30
    assert first_arms(setup) == arms
    assert first_arms(replace(setup, seed="another")) != arms


def test_a_hash_seed_is_for_one_session_and_for_both(script):
    sandbox = script()
    setup = sandbox.setup()
    benchmark = prepare(setup)
    sandbox.commands.clear()
    for number in range(5):
        anyio.run(benchmark.run, setup, number)
    seeds = [command.env["PYTHONHASHSEED"] for _, command in sandbox.commands]
    assert seeds[::2] == seeds[1::2]
    assert len(set(seeds)) == 5
    assert all(0 < int(seed) < 2**32 for seed in seeds)


def test_a_hash_seed_of_the_problems_own_stays(script):
    sandbox = script()
    setup = sandbox.setup(problem=replace(PROBLEM, env={"PYTHONHASHSEED": "7"}))
    anyio.run(prepare(setup).run, setup, 0)
    assert {command.env["PYTHONHASHSEED"] for _, command in sandbox.commands} == {"7"}


def test_preparing_runs_the_base_alone_and_the_first_run_is_not_counted(script):
    sandbox = script(base=[ended(wall_s=5.0)])
    benchmark = prepare(sandbox.setup())
    assert {arm for arm, _ in sandbox.commands} == {"base"}
    assert benchmark.session_s == pytest.approx(2 * 0.3)
    assert benchmark.notes == (SAME_INPUT,)


def test_a_budget_that_cannot_hold_six_pairs_is_refused_with_the_time_needed(script):
    sandbox = script(base=[ended(wall_s=1.95)] * 4)
    with pytest.raises(MisfitError) as refused:
        prepare(sandbox.setup(), budget_s=20.0)
    (mistake,) = refused.value.mistakes
    assert mistake.path == ("bench", "cli", "command")
    assert "2 s on the base" in mistake.message
    assert "about 24 s" in mistake.message
    assert "budget_s to 27" in mistake.hint
    sandbox = script(base=[ended(wall_s=1.95)] * 3)
    assert prepare(sandbox.setup(), budget_s=24.01).session_s == pytest.approx(4.0)
    sandbox = script(base=[ended(wall_s=1.96)] * 4)
    with pytest.raises(MisfitError, match=r"need about 24\.1 s, and budget_s is 24;"):
        prepare(sandbox.setup(), budget_s=24.0)


def test_a_noisy_moment_is_measured_again_before_a_budget_is_refused(script):
    sandbox = script(base=[ended(), ended(wall_s=3.0), ended(wall_s=3.0), ended()])
    assert prepare(sandbox.setup(), budget_s=20.0).name == "cli"
    assert len(sandbox.commands) == 4
    sandbox = script(base=[ended(wall_s=9.0)] * 4)
    with pytest.raises(MisfitError):
        prepare(sandbox.setup(), budget_s=20.0)
    assert len(sandbox.commands) == 2, "what no noise explains needs no third run"


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (ended(b"", 3, err=b"no big.txt"), "exited with 3 | no big.txt"),
        (ended(ending=Ending.SIGNALLED), "died of SIGSEGV"),
        (ended(ending=Ending.TIMEOUT), "longer than 120 s"),
    ],
)
@pytest.mark.parametrize("good", [0, 2])
def test_a_base_that_fails_is_refused_with_its_output(script, first, said, good):
    with pytest.raises(StudyError) as refused:
        prepare(script(base=[ended()] * good + [first]).setup())
    (mistake,) = refused.value.mistakes
    assert mistake.path == ("bench", "cli", "command")
    assert said in mistake.message


@pytest.mark.parametrize(
    ("done", "reason", "said"),
    [
        (ended(b"43\n"), Reason.DIFFERENT, "not the base's, in line 1"),
        (ended(code=1), Reason.DIFFERENT, "exited with 1"),
        (ended(b""), Reason.DIFFERENT, "not the base's"),
        (ended(dropped=9), Reason.DIFFERENT, "not the base's"),
        (ended(ending=Ending.SIGNALLED), Reason.CRASH, "SIGSEGV"),
        (ended(ending=Ending.TIMEOUT), Reason.TIMEOUT, "longer than"),
        (ended(ending=Ending.MEMORY), Reason.MEMORY, "more memory"),
        (ended(ending=Ending.PROCESSES), Reason.PROCESSES, "processes"),
    ],
)
def test_what_a_candidate_does_wrong_while_it_is_timed_is_a_rejection(script, done, reason, said):
    session = time_once(script(candidate=[done]))
    assert session.rejection.reason == reason
    assert said in session.rejection.message
    assert "benchmark cli" in session.rejection.message
    assert session.rejection.failures[0].check == "bench.cli"
    assert len(session.samples) == 2


def test_a_rejection_shows_both_outputs(script):
    session = time_once(script(candidate=[ended(b"43\n")]))
    (difference,) = session.rejection.failures[0].differences
    assert (difference.expected, difference.actual) == ("42\n", "43\n")


@pytest.mark.parametrize("varying", [[b"1\n"], [b"42\n", b"1\n"], [b"42\n", b"42\n", b"1\n"]])
def test_output_that_varies_on_the_base_is_not_held_against_candidates(script, varying):
    sandbox = script(base=map(ended, varying), candidate=[ended(b"2\n"), ended(code=1)])
    setup = sandbox.setup()
    benchmark = prepare(setup)
    note, same = benchmark.notes
    assert same == SAME_INPUT
    assert "differs from run to run" in note
    assert "exit status" in note
    assert anyio.run(benchmark.run, setup, 0).rejection is None
    assert anyio.run(benchmark.run, setup, 1).rejection.reason == Reason.DIFFERENT


def test_output_that_turns_out_to_vary_rejects_no_candidate(script):
    # Three runs and the base's own timed one are alike; then it prints something else.
    base = [ended()] * 5 + [ended(b"after midnight\n")]
    sandbox = script(base=base, candidate=[ended(b"after midnight\n"), ended(b"noon\n")])
    setup = sandbox.setup()
    benchmark = prepare(setup)
    assert benchmark.notes == (SAME_INPUT,)
    assert anyio.run(benchmark.run, setup, 0).rejection is None
    _, note = benchmark.notes
    assert "differs from run to run" in note
    assert anyio.run(benchmark.run, setup, 1).rejection is None
    assert len(benchmark.notes) == 2


def test_a_base_that_fails_later_is_our_fault(script):
    sandbox = script(base=[ended()] * 3 + [ended(code=1, err=b"disk full")])
    with pytest.raises(LabError, match=r"cli.*disk full"):
        time_once(sandbox)


def test_a_command_that_prints_nothing_gets_a_note(script):
    note, _ = prepare(script(base=[ended(b"")] * 3).setup()).notes
    assert "prints nothing" in note


def test_the_paths_of_slots_that_cannot_be_mounted_at_one_place_are_no_difference(script):
    said = [ended(b"in /a/candidate/x\n"), ended(b"in /b/candidate/x\n")]
    sandbox = script(base=[ended(b"in /a/base/x\n")] * 9, candidate=said)
    setup = sandbox.setup(seen="/a/{}")
    benchmark = prepare(setup)
    assert anyio.run(benchmark.run, setup, 0).rejection is None
    assert anyio.run(benchmark.run, setup, 1).rejection is not None


LONG = Captured(b"head\n", b"tail\n", 1_000)


@pytest.mark.parametrize(
    ("other", "where"),
    [
        (LONG, None),
        (replace(LONG, head=b"HEAD\n"), "line 1 of the output"),
        (replace(LONG, dropped=1_001), "the length of the output"),
        (replace(LONG, tail=b"TAIL\n"), "the end of the output"),
        (Captured(b"head\ntail\n"), "line 2 of the output"),
    ],
)
def test_long_outputs_are_compared_by_head_tail_and_length(other, where):
    difference = compare_outputs(LONG, other)
    assert (difference and difference.where) == where


def test_output_cut_in_two_is_the_same_as_in_one():
    assert compare_outputs(Captured(b"ab", b"cd"), Captured(b"abcd")) is None


# -- real processes, in the best sandbox that works here --

TOOL = "import sys\nprint(sum(range(50_000)))\n"
CHEATS = {
    "leaves at once": "import os\nos._exit(0)\n",
    "detects that it is timed": (
        "import os\nprint(0 if len(os.sched_getaffinity(0)) == 1 else sum(range(50_000)))\n"
    ),
    "says so itself": "print('1249975000')\n",
    "writes in its slot": "open('cache', 'w').write('1249975000')\nprint(sum(range(50_000)))\n",
}


@pytest.fixture(scope="module")
def real_stage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    sandbox = find_sandbox("auto", unsandboxed=True)
    python = anyio.run(probe_interpreter, PROBLEM, folder)

    def stage(text):
        slot = folder / f"slot{len(list(folder.iterdir()))}"
        slot.mkdir()
        (slot / "tool.py").write_text(text, "utf-8")
        seen = folder / "project" if sandbox.relocates else slot
        return Stage(PROBLEM, python, sandbox, slot, seen, (".",), is_writable=False)

    return stage


@pytest.mark.slow
def test_real_processes_are_timed_and_held_to_the_base(real_stage):
    base = real_stage(TOOL)
    cores = (min(os.sched_getaffinity(0)),)
    benchmark = prepare(TimingSetup(base, base, cores, "s"), budget_s=600.0)

    async def sessions():
        found = {}
        for name, text in {"equal": TOOL, **CHEATS}.items():
            found[name] = await benchmark.run(TimingSetup(base, real_stage(text), cores, "s"), 0)
        return found

    found = anyio.run(sessions)
    equal = found["equal"]
    assert equal.rejection is None
    assert all(0 < sample.wall_s <= equal.seconds for sample in equal.samples)
    assert all(sample.cpu_s > 0 for sample in equal.samples)
    assert equal.peak_rss_mb.base > 1
    assert found["leaves at once"].rejection.reason == Reason.DIFFERENT
    assert found["detects that it is timed"].rejection.reason == Reason.DIFFERENT
    assert found["says so itself"].rejection is None, "nobody can tell: it prints what it should"
    if base.sandbox.relocates:
        assert found["writes in its slot"].rejection.reason == Reason.DIFFERENT


# -- the clock --


def test_an_end_is_noticed_before_our_init_looks_around(monkeypatch):
    wait = os.wait4

    class Poller:
        """Comes back as soon as the child has ended, which it does meanwhile."""

        def register(self, *_):
            pass

        def poll(self, _timeout_ms):
            process.stdin.close()
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            return []

    def wait_for_it(_, options):  # an init has no children but its own; we may have others'
        return wait(process.pid, options)

    limits = {"timeout_s": 1, "memory_mb": 1, "processes": 1, "poll_s": 0.0}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        watched = watch.CommandWatch(process.pid, limits, False, ())
        monkeypatch.setattr(watch.os, "wait4", wait_for_it)
        monkeypatch.setattr(watch.select, "poll", Poller)
        monkeypatch.setattr(watched, "_check_limits", lambda: pytest.fail("it looked around first"))
        assert watched.run(0, 0)
        assert '"exit_code": 0' in watched.make_report(0.0)


# -- input files --

FILES = Benchmark(
    "cli", inputs="inputs.py:write", command=("{python}", "tool.py", "{inputs}/a/numbers.txt")
)
WRITE = """
def write(rng, folder):
    (folder / "a").mkdir()
    (folder / "a" / "numbers.txt").write_text(str(rng.random()))
"""


@dataclass
class ReadingSandbox(Scripted):
    """Notes what each command would read."""

    seen: list = field(default_factory=list)

    async def run(self, command):
        done = await super().run(command)
        self.seen.append((Path(command.argv[-1]), Path(command.argv[-1]).read_text()))
        return done


class FileMaker:
    """What a supplier does, without a process."""

    async def make(self, seed, count):
        content = binascii.b2a_base64(seed.encode(), newline=False).decode()
        return [json.dumps({"files": {"a/numbers.txt": content}}).encode()]


def test_each_pair_has_new_files_that_both_can_only_read(script, tmp_path, monkeypatch):
    scripted = script(base=[ended()], candidate=[ended()])
    sandbox = ReadingSandbox(scripted.scripts)
    for arm in ("base", "candidate"):
        (tmp_path / arm).mkdir()
    setup = sandbox.setup()
    stages = [
        replace(stage, slot=tmp_path / stage.slot.name) for stage in (setup.base, setup.candidate)
    ]
    setup = replace(setup, base=stages[0], candidate=stages[1])

    async def run():
        benchmark = await prepare_command_benchmark(
            FILES, setup, budget_s=60, files=InputFiles(FileMaker())
        )
        assert not any("known by heart" in note for note in benchmark.notes)
        rehearsed = len(sandbox.seen)
        sessions = [await benchmark.run(setup, number) for number in range(3)]
        return rehearsed, sessions

    rehearsed, sessions = anyio.run(run)
    assert [session.rejection for session in sessions] == [None] * 3
    assert len({text for _, text in sandbox.seen[:rehearsed]}) == 1
    pairs_seen = sandbox.seen[rehearsed:]
    assert [pairs_seen[at] == pairs_seen[at + 1] for at in (0, 2, 4)] == [True] * 3
    assert len({text for _, text in sandbox.seen}) == 4
    assert not any(path.exists() for path, _ in sandbox.seen)
    command = sandbox.commands[-1][1]
    folder = sandbox.seen[-1][0].parent.parent
    assert folder in {mount.source for mount in command.view.readable}
    assert folder not in {mount.source for mount in command.view.writable}


def test_files_that_lead_out_of_their_folder_are_refused(tmp_path):
    class Bad:
        async def make(self, seed, count):
            return [b'{"files": {"../../out.txt": "AAAA"}}']

    async def write():
        async with InputFiles(Bad()).write("s", tmp_path):
            pass

    with pytest.raises(ValueError, match="leads out of the folder"):
        anyio.run(write)
    assert list(tmp_path.iterdir()) == []


def find_python(folder):
    return anyio.run(probe_interpreter, PROBLEM, folder)


@pytest.mark.slow
def test_an_answer_known_by_heart_is_wrong_for_new_files(real_stage, tmp_path):
    """In the best sandbox there is: both processes see the files, and can't change them."""
    reading = "import sys\nprint(hash(open(sys.argv[1]).read()))\n"
    base = real_stage(reading)
    cores = (min(os.sched_getaffinity(0)),)
    cheats = {
        "knows": "print(4)\n",
        "changes": reading + "open(sys.argv[1], 'w').write('0')\n",
    }

    async def sessions():
        files = InputFiles(FileMaker())
        setup = TimingSetup(base, base, cores, "s")
        benchmark = await prepare_command_benchmark(FILES, setup, budget_s=600, files=files)
        honest = [await benchmark.run(setup, number) for number in range(2)]
        others = {
            name: await benchmark.run(replace(setup, candidate=real_stage(text)), 0)
            for name, text in cheats.items()
        }
        return honest, others

    honest, others = anyio.run(sessions)
    assert [session.rejection for session in honest] == [None, None]
    assert others["knows"].rejection.reason == Reason.DIFFERENT
    if base.sandbox.relocates:
        assert "Read-only file system" in others["changes"].rejection.failures[0].message


@pytest.mark.parametrize(
    ("maker", "message"),
    [
        (WRITE, None),
        ("def write(rng, folder): pass", "it wrote no file to the folder that it got"),
        ("def write(rng): pass", "takes 1 positional argument"),
    ],
)
def test_files_are_made_by_the_problem_s_own_function(tmp_path, maker, message):
    (tmp_path / "inputs.py").write_text(maker, "utf-8")
    stage = Stage(PROBLEM, find_python(tmp_path), Plain(), tmp_path, tmp_path, (".",))

    async def make():
        async with (
            open_supplier(FILES, stage) as supplier,
            InputFiles(supplier).write("seed", tmp_path) as folder,
        ):
            return (folder / "a" / "numbers.txt").read_text()

    if message is None:
        assert 0 < float(anyio.run(make)) < 1
    else:
        with pytest.raises(StudyError, match=message):
            anyio.run(make)

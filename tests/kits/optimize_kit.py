"""Optimizations as processes of their own: a scripted proposer, a simulated clock, kills by place.

The command is the real one. What is put into its process (`become_command`) comes from variables
that only this kit knows: `KIT_INSTANT` is where it dies, `KIT_TIMER` who holds the clock. Every
place that it passes is written to a file, so that the tests can say which ones there are.
"""

import csv
import json
import math
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from arena_fault_kit import NURSERY, PATIENCE_S, WORKING, Nursery, Site
from clock_kit import make_session
from repository_kit import fingerprint, make_repository, run_git

from fairtrial.arena import Arena, Bench, events as arena_events
from fairtrial.arena.delivery import delivery, winner
from fairtrial.arena.timing import function_benchmark as calls
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.cli.event_text import describe_event
from fairtrial.cli.main import main
from fairtrial.core.events import emit_to_all
from fairtrial.optimize import confirmation, events as optimize_events, optimizer
from fairtrial.optimize.scheduler import Scheduler
from fairtrial.sandbox import host_lock as quiet
from fairtrial.study.agents.journal import Journal
from fairtrial.study.runner import run as engine_run
from fairtrial.study.tables import export

HERE = Path(__file__).parent
# For tests that have no way to the arena's kits.
__all__ = ["PATIENCE_S", "WORKING", "fingerprint", "run_git"]

MODULE = (
    "def total(n):\n    return sum([i for i in range(n) for _ in range({})]) // {}\n"
    "\n\ndef other():\n    return 7\n"
)
# Lineage 0 is right and gets better, lineage 1 is wrong, and repaired comes to the same as lineage
# 0, lineage 2 is slower than the base and then gives up: its second is the base itself. The others
# meet each other and the first ones, in whatever order they come.
PROPOSING = f'''
import os, random, time
from pathlib import Path
from fairtrial import Candidate, LabError
from fairtrial.arena import FileState
from fairtrial.study.runner import control
from fairtrial.optimize.proposals import Reply, Usage

MODULE = {MODULE!r}
TEXTS = {{
    "initial/0": MODULE.format(16, 16),
    "refine/0": MODULE.format(8, 8),
    "initial/1": MODULE.format(16, 20),
    "repair/1": MODULE.format(16, 16) + "# mended\\n",
    "refine/1": MODULE.format(12, 12),
    "initial/2": MODULE.format(96, 96),
    "refine/2": MODULE.format(32, 32) + "# as it was\\n",
    "initial/3": MODULE.format(16, 16) + "# too\\n",
    "refine/3": MODULE.format(12, 12) + "# too\\n",
    "initial/4": MODULE.format(16, 20) + "# too\\n",
    "repair/4": MODULE.format(24, 24),
    "initial/5": "def total(n:\\n",
    "initial/6": MODULE.format(12, 12) + "# first\\n",
    "refine/6": MODULE.format(8, 8) + "# too\\n",
    "initial/7": MODULE.format(32, 32) + "# nothing\\n",
}}

def propose(brief, request):
    """Counts its calls in a file: each of them would have to be paid for."""
    name = f"{{request.kind.value}}/{{request.lineage}}"
    with open(os.environ["KIT_FOLDER"] + "/calls", "a") as file:
        file.write(name + "\\n")
    order = os.environ.get("KIT_ORDER")
    if order:  # who comes when
        time.sleep(random.Random(order + name).random() / 10)
    usage = Usage("script", 100, 10, 0.01)
    text = TEXTS.get(name)
    if text is None:
        return Reply(refusal="nothing more to say", usage=usage)
    files = {{"src/mod.py": FileState(text.encode())}}
    return Reply((Candidate(name.replace("/", "-"), files=files),), usage)

def nothing(brief, request):
    """Has nothing to propose, if it can be reached; may have the optimization cancelled."""
    folder = os.environ["KIT_FOLDER"]
    if os.path.exists(folder + "/down"):
        raise LabError("the network is down")
    if os.path.exists(folder + "/cancel"):
        control.request(Path(folder, "out"), "cancel")
        time.sleep(3600)  # nobody waits for that
'''
FILES = {
    "src/mod.py": MODULE.format(32, 32),
    "inputs.py": "def number(rng):\n    return (rng.randrange(200, 250),), {}\n",
    "proposing.py": PROPOSING,
    ".gitignore": "__pycache__/\n",
}
PROBLEM = {
    "problem_id": "total",
    "editable": ["src/*.py"],
    "import_roots": ["src"],
    "python": sys.executable,
    "check": [{"function": "mod:total", "inputs": "inputs.py:number", "cases": 2}],
    "bench": [{"name": "total", "call": "mod:total", "inputs": "inputs.py:number"}],
    "budget_s": 60,
}
TREE = (
    *("candidate_id", "parent_id", "lineage", "step", "kind", "name", "digest", "duplicate_of"),
    *("verdict", "ratio", "low", "high", "sessions", "adopt"),
)
ASKING = ("--agent", "function", "--option", "use=proposing:propose", "--lineages", "3")
NOTHING = ("--agent", "function", "--option", "use=proposing:nothing")


# -- within the process --


def become_command():
    """Be `fairtrial`, with what the variables say put in; for good, so not in the tests' own."""
    # Tests that a script has started in the background inherit that nobody listens to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    quiet.HOST_FOLDER = Path(os.environ["KIT_FOLDER"], "locks")
    if os.environ["KIT_TIMER"] == "simulated":
        simulate_clock()
    else:
        shorten_sessions()
    mark_places()
    main()


def pass_by(place):
    """Write a place down; die there if it is the one."""
    with Path(os.environ["KIT_FOLDER"], "places").open("a") as file:
        file.write(place + "\n")
    if place == os.environ.get("KIT_INSTANT"):
        os.kill(os.getpid(), signal.Signals[os.environ.get("KIT_SIGNAL", "SIGKILL")])


class SimBench:
    """A bench whose sessions are a function of the candidate alone."""

    notes = ()

    async def run(self, changes, label, first, count, budget_s):
        pass_by(f"timing {label}")
        (state,) = changes.files.values()
        times = int(re.search(rb"range\((\d+)\)\]", state.content)[1])
        batch = SessionBatch(seconds=0.01)
        for number in range(first, first + count):
            rng = random.Random(f"{times}/{label.partition('/')[0]}/{number}")
            ratio = math.exp(rng.gauss(math.log(times / 32), 0.001))
            batch.replicates.append((make_session(ratio, benchmark="total", number=number),))
        return batch


def simulate_clock():
    """No session is taken; all the rest is real."""

    @asynccontextmanager
    async def bench(arena):
        yield SimBench()

    Arena.bench = bench


def shorten_sessions():
    """Sessions are real, with little to do; what each would say of the time is known before.

    The clock of a busy machine may not tell who is faster, however often it is asked.
    """
    choose, take_replicate = calls.choose_schedule, Bench._run_replicate

    def choose_short(*given):
        return replace(choose(*given), calls=4, rounds=4)

    async def take_known(bench, setup, number):
        (taken,) = await take_replicate(bench, setup, number)
        ratio = math.exp(random.Random(f"{setup.seed}/{number}").gauss(math.log(0.5), 0.001))
        known = make_session(ratio, benchmark="total", number=number)
        return (replace(known, rejection=taken.rejection),)

    calls.choose_schedule, Bench._run_replicate = choose_short, take_known


def pass_by_event(event):
    """Pass by whatever is emitted."""
    if isinstance(event, optimize_events.ProposalRequested):
        pass_by(f"asked {event.kind.value}/{event.lineage}")
    elif isinstance(event, optimize_events.ProposalReceived):
        pass_by(f"replied {event.kind.value}/{event.lineage}")
    elif isinstance(event, optimize_events.CandidateEntered):
        pass_by(f"entered {event.candidate_id}")
    elif isinstance(event, arena_events.CheckStarted):
        pass_by(f"checking {event.candidate_id}")
    elif isinstance(event, optimize_events.CandidatePassed):
        pass_by(f"passed {event.candidate_id}")
    elif isinstance(event, arena_events.TimingProgress):
        pass_by(f"timed {event.candidate_id}")
    elif isinstance(event, arena_events.CandidateJudged):
        pass_by(f"judged {event.candidate_id}")
    elif text := describe_event(event):
        pass_by(f"say {text}")


def mark_places():
    """Put the places into the code of this process."""
    append, is_time = Journal.append, Scheduler._is_time
    take_replicate, take_turns = Bench._run_replicate, calls.take_turns
    opened_proposer, record_events = optimizer.opened_proposer, optimizer.record_events
    sessions = []

    def note_append(journal, kind, data, **paid):
        name = ""
        if kind in ("reply", "step"):
            name = " {kind}/{lineage}".format(**data["request"])
        elif kind == "verdict":
            name = f" {data['name']}"
        pass_by(f"before {kind}{name}")
        append(journal, kind, data, **paid)
        pass_by(f"committed {kind}{name}")

    def note_waiting(scheduler):
        for waiting in scheduler._waiting:
            pass_by(f"waiting {waiting.entry.id}")
        return is_time(scheduler)

    async def note_session(bench, setup, number):
        sessions.append(f"session {number} of {setup.seed.partition('/')[2]}")
        return await take_replicate(bench, setup, number)

    def note_turns(*arguments):
        pass_by(sessions[-1])  # both workers are there by now
        return take_turns(*arguments)

    @asynccontextmanager
    async def note_proposer(proposer, arena):
        async with opened_proposer(proposer, arena) as opened:
            target = getattr(opened, "target", None)
            if target is not None:  # else it is asked by other means

                def note_call(brief, request):
                    reply = target(brief, request)
                    pass_by(f"asking {request.kind.value}/{request.lineage}")
                    return reply

                object.__setattr__(opened, "target", note_call)
            yield opened

    Journal.append, Scheduler._is_time = note_append, note_waiting
    Bench._run_replicate, calls.take_turns = note_session, note_turns
    optimizer.opened_proposer = note_proposer
    optimizer.record_events = lambda record: emit_to_all(record_events(record), pass_by_event)
    surround(calls, "calibrate", "calibrating")
    surround(confirmation.delivery, "check_again", "rechecking")
    surround(winner, "measure_coverage", "coverage")
    surround(winner, "profile_winner", "profile")
    surround(engine_run, "export_tables", "tables")
    surround(export, "check_set", "tables written")
    surround(delivery, "write_patch", "patch")
    surround(delivery, "atomic_write", "explanation")
    surround(delivery, "put_on_branch", "branch")
    surround(delivery, "apply_to_tree", "apply")


def surround(module, name, place):
    """Pass by right before a function is called."""
    function = getattr(module, name)

    def call(*arguments, **options):
        pass_by(place)
        return function(*arguments, **options)

    setattr(module, name, call)


# -- around it --


class OptimizeNursery(Nursery):
    """Forks processes that have all of this already."""

    def __init__(self):
        self._line, other = socket.socketpair()
        program = f"import sys; sys.path[:0] = [{str(HERE)!r}]; import optimize_kit\n{NURSERY}"
        with other:
            argv = [sys.executable, "-c", program, str(other.fileno())]
            self._process = subprocess.Popen(argv, pass_fds=[other.fileno()])
        self.pid = self._process.pid


class OptimizeSite(Site):
    """A small project, and folders that nobody else uses."""

    def __init__(self, folder, nursery, problem=()):
        self.folder, self.nursery = folder, nursery
        self.top = folder / "repo"
        self.home, self.temp, self.cache, self.locks = (
            folder / name for name in ("home", "temp", "cache", "locks")
        )
        for each in (self.home, self.temp, self.cache, self.locks):
            each.mkdir(parents=True)
        text = json.dumps({**PROBLEM, **dict(problem)})
        make_repository(self.top, {**FILES, "problem.yaml": text})

    def optimize(self, *options, instant="", timer="simulated", asking=ASKING, **env):
        """Start `fairtrial optimize`; it dies at its instant."""
        words = ["optimize", str(self.top / "problem.yaml"), *asking, "--output", "out", *options]
        words.append("--no-audit")  # two drawn inputs may well have the same answer
        if not WORKING:
            words.append("--unsandboxed")
        given = {"KIT_INSTANT": instant, "KIT_TIMER": timer, "KIT_FOLDER": str(self.folder), **env}
        program = "from optimize_kit import become_command; become_command()"
        return self.start(program, *words, cold=False, **given)

    def finish(self, *options, **more):
        """Let it run to its end: what it says of itself."""
        with self.optimize("--json", *options, **more) as running:
            assert running.end() == 0, running.out + running.err
            running.await_nobody()
            return json.loads(running.out)

    def calls(self):
        """How often the proposer was asked for what."""
        return Counter(self._lines("calls"))

    def places(self):
        """What has been passed by, in order."""
        return self._lines("places")

    def _lines(self, name):
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def tree(self):
        """The candidates as the tables have them: what was decided."""
        with (self.folder / "out" / "candidates.csv").open(newline="") as file:
            return [tuple(row[name] for name in TREE) for row in csv.DictReader(file)]

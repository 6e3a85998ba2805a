"""Evaluations in separate processes, to be disturbed; and what they leave behind.

Each runs under a guard that adopts all it leaves behind: the guard ends when the last process of an
evaluation is gone, in whatever session or namespace it was.
"""

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from repository_kit import make_repository, write_files

from fairtrial.sandbox.selection import FULL_SANDBOXES, try_sandbox

PATIENCE_S = 180.0
SOON_S = 60.0
"""How long the last processes may take to end, on a machine that is busy with other tests."""
WORKING = [item.name for item in FULL_SANDBOXES if not try_sandbox(item)]
MODULE = """
import pluggy

def total(numbers):
    return sum(numbers)
"""
RIGHT = MODULE.replace("sum(numbers)", "sum(list(numbers))")
WRONG = MODULE.replace("sum(numbers)", "sum(numbers) + 1")
# Says from inside of a sandbox that it is there, and stays until it may go.
WAITS = MODULE.replace(
    "return",
    """import os, time
    open("begun", "w").close()
    while os.path.exists("begun") and not os.path.exists("go"):
        time.sleep(0.01)
    return""",
)
# Adopts what `main` leaves behind, and tells of it; `main` is what a new process is to be.
GUARD = """
import ctypes, os, signal, sys
def guard(told, out, err, main):
    def tell(what):
        os.write(told, f"{what}\\n".encode())
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    begun = os.fork()
    if begun == 0:
        os.setsid()
        # Whoever has started the tests in the background has had it ignored: that is inherited.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tell(os.getpid())
        os.close(told)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        main()
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        if pid == begun:
            tell(os.waitstatus_to_exitcode(status))
    tell("empty")
"""
COLD = (
    GUARD
    + """
told, out, err, *argv = sys.argv[1:]
guard(int(told), out, err, lambda: os.execvp(argv[0], argv))
"""
)
# Forks guards whose `main` has the package already: importing it takes longer than all the rest.
NURSERY = (
    GUARD
    + """
import gc, json, socket
import anyio._backends._asyncio, click, fairtrial.arena.evaluation, fairtrial.cli.evaluate
import fairtrial.cli.main, fairtrial.arena.problem_files, fairtrial.sandbox.selection, msgspec, yaml

def become(asked):
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = ["-c", *asked["arguments"]]
    try:
        exec(asked["program"], {"__name__": "__main__"})
    except SystemExit as stop:
        sys.stdout.flush()
        os._exit(stop.code or 0)
    except KeyboardInterrupt:  # as an interpreter does it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.excepthook(*sys.exc_info())
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)

def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

gc.collect()
gc.freeze()
signal.signal(signal.SIGCHLD, reap)
line = socket.socket(fileno=int(sys.argv[1]))
while True:
    text, (*descriptors,), _, _ = socket.recv_fds(line, 1 << 20, 1)
    if not text:
        break
    asked = json.loads(text)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        line.close()
        os.chdir(asked["folder"])
        guard(descriptors[0], asked["out"], asked["err"], lambda: become(asked))
        os._exit(0)
    os.close(descriptors[0])
    line.sendall(str(pid).encode())
"""
)
# The command itself, with a lock and a choice of sandboxes that are the test's own.
COMMAND = """
import os, sys
from pathlib import Path
from fairtrial.sandbox import selection as choosing
from fairtrial.sandbox import host_lock as quiet
quiet.HOST_FOLDER, sandboxes = Path(sys.argv[1]), sys.argv[2].split(",")
choosing.FULL_SANDBOXES = tuple(each for each in choosing.FULL_SANDBOXES if each.name in sandboxes)
del sys.argv[1:3]
from fairtrial.cli.main import main
main()
"""
# The same from Python, where Ctrl-C is asyncio's to deal with.
LIBRARY = """
import sys
from pathlib import Path
from fairtrial.arena import ArenaSettings, evaluate_candidates_sync, load_problem
settings = ArenaSettings(timing="none",
    lock_folder=Path(sys.argv[1]), emit=lambda event: print(event, file=sys.stderr, flush=True)
)
evaluate_candidates_sync(load_problem(sys.argv[2]), sys.argv[3:], settings=settings)
"""
# A warm server that takes for ever to import what it shall.
SLOW_SERVER = """
import sys, anyio
from pathlib import Path
from fairtrial.sandbox.warm_start import WarmServer
async def run(place):
    async with WarmServer.starting(
        Path(sys.executable), files=[f"{place}/slow.py"], folders=[place], never=[],
        env={"PYTHONPATH": str(place)}, scratch_parent=place,
    ):
        pass
anyio.run(run, Path(sys.argv[1]))
"""


class Site:
    """A repository with a problem, candidates, and private folders."""

    def __init__(self, folder, nursery):
        self.folder, self.nursery = folder, nursery
        self.top = folder / "repo"
        self.home, self.temp, self.cache, self.locks = (
            folder / name for name in ("home", "temp", "cache", "locks")
        )
        for item in (self.home, self.temp, self.cache, self.locks):
            item.mkdir(parents=True)
        make_repository(
            self.top,
            {
                "src/few.py": MODULE,
                "tools/make.py": (
                    "def numbers(rng):\n    return ([rng.randrange(9) for _ in range(3)],), {}\n"
                ),
                ".gitignore": "__pycache__/\n",
                "problem.yaml": json.dumps(self.problem()),
            },
        )
        self.add_candidates(right=RIGHT, wrong=WRONG, waits=WAITS)

    def problem(self):
        check = {"function": "few:total", "inputs": "tools/make.py:numbers", "cases": 3}
        return {
            "problem_id": "few",
            "editable": ["src"],
            "python": sys.executable,
            "check": [{**check, "timeout_s": 60}],
        }

    def evaluate(self, *candidates, sandbox=None, options=(), prefix=(), cold=False, **env):
        """Start `fairtrial evaluate`; `prefix` is a command that becomes another."""
        given = [str(self.folder / "candidates" / name) for name in candidates]
        arguments = ["evaluate", "--check-only", str(self.top / "problem.yaml"), *given, *options]
        if sandbox == "plain":
            arguments.append("--unsandboxed")
        sandboxes = sandbox or ",".join(WORKING)
        words = [self.locks, sandboxes, *arguments]
        return self.start(COMMAND, *words, prefix=prefix, cold=cold or bool(prefix), **env)

    def start(self, program, *arguments, prefix=(), cold=True, **env):
        """Start any Python program: in a new interpreter, or one that knows the package."""
        env = {**os.environ, **self.variables(), **env}
        words = [str(word) for word in arguments]
        if cold:
            return Running(self, [*prefix, sys.executable, "-c", program, *words], env)
        return Running(self, words, env, program)

    def variables(self):
        """Return the variables that keep a command to this site."""
        return {
            "FAIRTRIAL_HOME": str(self.home),
            "TMPDIR": str(self.temp),
            "XDG_CACHE_HOME": str(self.cache),
        }

    def add_candidates(self, **texts):
        """Whole files for `src/few.py`, by name."""
        files = {f"{name}/src/few.py": text for name, text in texts.items()}
        write_files(self.folder / "candidates", files)

    def files(self):
        """List all remaining files, except for those of the lock."""
        places = [self.home / "arena", self.temp, self.cache]
        return sorted(str(path) for place in places if place.exists() for path in place.iterdir())

    def locked(self):
        """List the files that are locked."""
        files = [*self.locks.iterdir(), *self.home.glob("arena/*/lock")]
        return [str(file) for file in files if file.is_file() and is_locked(file)]


def is_locked(file):
    """Return whether a file is locked."""
    with suppress(FileNotFoundError), file.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class Running:
    """A command under its guard. A context manager: at the end none of its processes is left."""

    def __init__(self, site, words, env, program=None):
        self.site = site
        folder = site.folder / f"run-{time.monotonic_ns()}"
        folder.mkdir()
        self._out, self._err = folder / "out", folder / "err"
        self._ear, mouth = os.pipe()
        try:
            if program is None:
                guarded = [sys.executable, "-I", "-S", "-c", COLD, str(mouth)]
                process = subprocess.Popen(
                    [*guarded, str(self._out), str(self._err), *words],
                    env=env,
                    cwd=site.folder,
                    pass_fds=[mouth],
                )
                self._guard, self._reap = process.pid, process.wait
            else:
                asked = {"folder": str(site.folder), "out": str(self._out), "err": str(self._err)}
                asked |= {"env": env, "arguments": words, "program": program}
                self._guard, self._reap = site.nursery.fork(asked, mouth), lambda: None
        finally:
            os.close(mouth)
        self._told = b""
        self._is_over = False
        self.pid = int(self._hear(PATIENCE_S))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while not self._listen(0.02):
            for pid, _ in self.processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._reap()
        os.close(self._ear)

    @property
    def out(self):
        return self._out.read_text() if self._out.exists() else ""

    @property
    def err(self):
        return self._err.read_text() if self._err.exists() else ""

    def verdicts(self):
        """By name; of a command that was asked for --json."""
        return {load["name"]: load["verdict"] for load in json.loads(self.out)["candidates"]}

    def send(self, number, *, to_group=False):
        """A signal, if it isn't over by itself: how it ended will tell."""
        with suppress(ProcessLookupError):
            (os.killpg if to_group else os.kill)(self.pid, number)

    def end(self):
        """How the command itself ended."""
        return int(self._hear(PATIENCE_S))

    def await_nobody(self):
        """Wait until all of its processes have ended."""
        assert self._hear(SOON_S) == "empty"

    def await_true(self, condition):
        """Wait until a condition is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition(self)):
            is_over = self._listen(0.004)
            if time.monotonic() > deadline or (is_over and not condition(self)):
                self.fail("what was waited for never came")
        return found

    def pool(self):
        """The folder of its pool, if it has one by now."""
        for owner in self.site.home.glob("arena/*/owner.json"):
            with suppress(OSError, ValueError):
                if json.loads(owner.read_text())["pid"] == self.pid:
                    return owner.parent
        return None

    def begun(self):
        """The slots in which a candidate waits."""
        pool = self.pool()
        return [] if pool is None else [path.parent for path in pool.glob("*/begun")]

    def let_go(self):
        """Tell waiting candidates to go on."""
        for slot in self.begun():
            (slot / "go").touch()

    def processes(self):
        """All below the guard, as (pid, how it was called)."""
        return list_below(self._guard)

    def inits(self):
        """Those that are pid 1 where they are."""
        return [pid for pid, _ in self.processes() if is_first(pid)]

    def groups(self):
        """Its control groups."""
        walked = os.walk("/sys/fs/cgroup")
        names = [name for _, folders, _ in walked for name in folders]
        marks = ["fairtrial", str(self.pid)]
        return [name for name in names if name.split("-")[0:3:2] == marks]

    def find(self, word):
        """The processes that were called with a word."""
        return [pid for pid, argv in self.processes() if word in argv]

    def fail(self, message):
        lines = [f"{pid} {argv}" for pid, argv in self.processes()]
        pytest.fail("\n".join([message, *lines, self.out[-2000:], self.err[-2000:]]))

    def _hear(self, within_s):
        deadline = time.monotonic() + within_s
        while b"\n" not in self._told:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self._listen(left_s):
                self.fail(f"nothing was told in {within_s} s")
        line, _, self._told = self._told.partition(b"\n")
        return line.decode()

    def _listen(self, within_s):
        """Whether the guard is gone; waits a while for what it tells."""
        if not self._is_over and select.select([self._ear], [], [], within_s)[0]:
            text = os.read(self._ear, 4096)
            self._told += text
            self._is_over = not text
        return self._is_over


class Nursery:
    """The process that warm guards are forked from. A context manager: it ends at the end."""

    def __init__(self):
        self._line, other = socket.socketpair()
        with other:
            argv = [sys.executable, "-c", NURSERY, str(other.fileno())]
            self._process = subprocess.Popen(argv, pass_fds=[other.fileno()])
        self.pid = self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._line.close()
        self._process.wait(PATIENCE_S)

    def fork(self, asked, told):
        """Start a guard that tells into a pipe; its pid."""
        socket.send_fds(self._line, [json.dumps(asked).encode()], [told])
        return int(self._line.recv(64))


def list_below(top):
    """The processes that a process has started, and those that these have: (pid, how called)."""
    parents = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with suppress(OSError):
                stat = (place / "stat").read_text()
                parents[int(place.name)] = int(stat.rpartition(")")[2].split()[1])
    found, waiting = [], [top]
    while waiting:
        parent = waiting.pop()
        inner = [pid for pid, above in parents.items() if above == parent]
        waiting.extend(inner)
        found.extend((pid, called(pid)) for pid in inner)
    return found


def is_first(pid):
    """Whether a process is pid 1 of a namespace below ours."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
        return len(numbers) > 1 and numbers[-1] == "1"
    return False


def called(pid):
    """A process as it was called, and what it is doing."""
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return argv or Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "(gone)"

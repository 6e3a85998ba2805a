"""A real project in a repository of its own, candidates for it, and what must not have changed."""

import difflib
import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import mischief
from registry import install, unpack
from repository_kit import fingerprint, run_git

from fairtrial import Candidate, CodeProblem
from fairtrial.arena import ArenaSettings, FileState, evaluate_candidates_sync
from fairtrial.core import StudyError
from fairtrial.sandbox import Limits

MARK = "REAL_PROJECT"
"""A variable that every process of a check has, and no other."""
LIMITS = Limits(memory_mb=512, processes=16)
TIMEOUT_S = 6.0
PATIENCE = 10
"""How much longer those may take that were late and don't hang: the machine may be busy."""
LATE = "it took longer than"
GONE_S = 60.0
"""How long what has been killed may take to be gone, on a busy machine."""


class Project:
    """A project as somebody has it on disk: a repository, perhaps an environment in it.

    folder: the repository
    token: a name that nothing else on this machine has
    """

    def __init__(self, sdist, folder):
        self.folder = unpack(sdist, folder)
        self.token = f"fairtrial-real-{os.getpid()}-{folder.name}"
        with (self.folder / ".gitignore").open("a") as ignored:
            ignored.write("\n/.venv/\n/build/\n*.so\n*.egg-info/\n__pycache__/\n")

    def commit(self):
        """Make it a repository with all that is there now."""
        run_git(self.folder, "init", "--quiet")
        run_git(self.folder, "add", "--all")
        run_git(self.folder, "commit", "--quiet", "--message", "as released")

    def make_environment(self, *requirements):
        """A virtual environment in the project, with pytest and these packages."""
        words = [sys.executable, "-m", "venv", "--without-pip", self.folder / ".venv"]
        subprocess.run(words, check=True)
        self.install("pytest==8.3.4", *requirements)

    def install(self, *arguments):
        """What `pip install` does, in that environment."""
        install(self.folder / ".venv" / "bin" / "python", *arguments)

    def read(self, path):
        return (self.folder / path).read_text("utf-8")

    def problem(self, **fields):
        """A problem whose checks carry our mark, with limits that are soon reached."""
        env = {MARK: self.token, **fields.pop("env", {})}
        return CodeProblem(self.token, folder=self.folder, env=env, limits=LIMITS, **fields)

    def candidate(self, name, path, text):
        """A candidate that is a diff of one file; without text the file goes."""
        old = self.read(path).splitlines(keepends=True)
        new = [] if text is None else text.splitlines(keepends=True)
        to = "/dev/null" if text is None else f"b/{path}"
        diff = "".join(difflib.unified_diff(old, new, f"a/{path}", to))
        assert diff, f"{name} changes nothing"
        return Candidate(name, diff=diff.encode())

    def overlay(self, name, path, text):
        """A candidate that is a whole file."""
        return Candidate(name, files={path: FileState(text.encode())})

    def hostile(self, path, *, inside, on_import, test):
        """Those candidates whose ends are `mischief.ENDS`.

        path: the file that they change
        inside: a line of it that some test runs; most of the mischief is done before it
        on_import: a line of it that is run on import
        test: a file of tests
        """
        text, tests = self.read(path), self.folder / Path(test).parent / "test_*.py"
        own = [self.folder / name for name in ("new.py", ".git/new", ".venv/lib/new", ".venv/new")]
        placed = {
            inside: {
                "crashing": mischief.CRASHING,
                "leaving": mischief.LEAVING,
                "hanging": mischief.HANGING,
                "leaking": mischief.LEAKING,
                "forking": mischief.FORKING,
            },
            on_import: {
                "writing outside": mischief.writing(self.far_places()),
                "writing into the tree": mischief.writing(own),
                "deleting tests": mischief.deleting(tests),
                "deleting tests at the end": mischief.deleting_at_the_end(tests),
                "softening tests": mischief.softening(tests),
            },
        }
        return [
            *(
                self.candidate(name, path, mischief.before(text, line, code))
                for line, codes in placed.items()
                for name, code in codes.items()
            ),
            self.candidate("without a test", test, None),
        ]

    def far_places(self):
        """Where no candidate may leave anything; new names, in case that one does."""
        folders = [
            self.folder.parent,
            Path.home(),
            Path(os.environ["FAIRTRIAL_HOME"], "arena"),
            *map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr/local", "/")),
            Path(os.__file__).parent,
            Path(sys.prefix),
            Path(__file__).parent,
        ]
        return [folder / self.token for folder in folders]

    def processes(self):
        """Processes of checks that are still there, by the mark in their environment."""
        mark = f"{MARK}={self.token}"
        return [pid for pid, text in read_all("environ") if mark in text.split("\0")]


@contextmanager
def unharmed(project, home):
    """Nothing of the user's is changed by what happens inside, and nothing of ours is left."""
    before = fingerprint(project.folder)
    children = own_children()
    yield
    changed = {path for path, _ in before.items() ^ fingerprint(project.folder).items()}
    assert not changed
    assert not [place for place in project.far_places() if os.path.lexists(place)]
    assert not list(home.glob("arena/*"))
    until = time.monotonic() + GONE_S
    while left := [*project.processes(), *(own_children() - children)]:
        assert time.monotonic() < until, [spell_process(pid) for pid in left]
        time.sleep(0.05)


def spell_process(pid):
    """What a process is, for those who wonder why it is there."""
    with suppress(OSError):
        return pid, Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").split("\0")
    return pid, "gone by now"


def own_children():
    """The processes that this one has started, as far as they are still there."""
    own = str(os.getpid())
    return {pid for pid, text in read_all("stat") if text.rpartition(")")[2].split()[1] == own}


def read_all(name):
    """What the system says of each process, by its number; some end meanwhile."""
    for path in Path("/proc").glob(f"[0-9]*/{name}"):
        with suppress(OSError):
            yield path.parent.name, path.read_text("utf-8", "replace")


def judge(problem, candidates, *, warm=True):
    """The judgements by name; on a busy machine only those that hang may take too long."""
    checks = tuple(replace(each, timeout_s=PATIENCE * each.timeout_s) for each in problem.check)
    patient = replace(problem, check=checks)
    try:
        judged = judge_once(problem, candidates, warm=warm)
    except StudyError as error:
        if LATE not in str(error):
            raise
        return judge_once(patient, candidates, warm=warm)  # the base itself was late
    late = [name for name, end in ends(judged).items() if end == "rejected: timeout"]
    again = [each for each in candidates if each.name in late and "hanging" not in each.name]
    if again:
        judged |= judge_once(patient, again, warm=warm)
    return judged


def judge_once(problem, candidates, *, warm):
    evaluation = evaluate_candidates_sync(
        problem, candidates, settings=ArenaSettings(timing="none", warm=warm)
    )
    assert [each.name for each in evaluation.judgements] == [each.name for each in candidates]
    return {each.name: each for each in evaluation.judgements}


def ends(judgements):
    """What each came to, in words."""
    return {name: end_of(judgement) for name, judgement in judgements.items()}


def end_of(judgement):
    if judgement.rejection:
        return f"{judgement.verdict}: {judgement.rejection.reason}"
    same = f", like {judgement.duplicate_of}" if judgement.duplicate_of else ""
    return f"{judgement.verdict}{same}"


def surprises(found, expected):
    """Where ends are others than expected, of which there may be several."""
    assert found.keys() == expected.keys()
    return {
        name: (end, expected[name])
        for name, end in found.items()
        if end not in as_several(expected[name])
    }


def as_several(expected):
    return (expected,) if isinstance(expected, str) else expected

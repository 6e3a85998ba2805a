"""A real project in a repository of its own, candidates for it, and what must not have changed."""

import difflib
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from mischief import before
from registry import install, unpack
from trees import fingerprint

from fairtrial import Candidate, CodeProblem, judge_candidates
from fairtrial.arena.settings import ArenaSettings
from fairtrial.model.candidates import FileState
from fairtrial.model.commands import Limits

MARK = "REAL_PROJECT"
"""A variable that every process of a check has, and no other."""
LIMITS = Limits(memory_mb=512, processes=16)
TIMEOUT_S = 6.0


class Project:
    """A project as somebody has it on disk: a repository, perhaps an environment in it.

    folder: the repository
    outside: a folder beside it that is none of a candidate's business
    """

    def __init__(self, sdist, folder):
        self.folder = unpack(sdist, folder)
        self.outside = folder.with_name("outside")
        self.outside.mkdir()
        self.token = f"fairtrial-real-{os.getpid()}-{folder.name}"
        with (self.folder / ".gitignore").open("a") as ignored:
            ignored.write("\n/.venv/\n/build/\n*.so\n*.egg-info/\n__pycache__/\n")

    def commit(self):
        """Make it a repository with all that is there now."""
        for command in (["init", "-q"], ["add", "--all"], ["commit", "-q", "-m", "as released"]):
            who = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
            subprocess.run(["git", *who, *command], cwd=self.folder, check=True)

    def make_environment(self, *requirements):
        """A virtual environment in the project, with these packages and pytest."""
        subprocess.run([sys.executable, "-m", "venv", self.folder / ".venv"], check=True)
        python = self.folder / ".venv" / "bin" / "python"
        install(python, "pytest", *requirements, what=f"pytest and {' '.join(requirements)}")
        return python

    def read(self, path):
        return (self.folder / path).read_text("utf-8")

    def problem(self, **fields):
        """A problem whose checks carry our mark, with limits that are soon reached."""
        env = {MARK: self.token, **fields.pop("env", {})}
        fields = {"limits": LIMITS, **fields}
        return CodeProblem(self.folder.name, folder=self.folder, env=env, **fields)

    def far_places(self):
        """Where nobody's candidate may leave anything; the tree itself is not among them."""
        folders = [
            self.outside,
            Path.home(),
            Path("/tmp"),
            Path("/var/tmp"),
            Path("/dev/shm"),
            Path("/etc"),
            Path("/usr/local"),
            Path(os.__file__).parent,
            Path(sys.prefix),
            Path(__file__).parent,
        ]
        return [folder / self.token for folder in folders]

    def stray_files(self):
        """What a candidate got out of its sandbox."""
        return [place for place in self.far_places() if os.path.lexists(place)]

    def processes(self):
        """Processes of checks that are still there, by the mark in their environment."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                variables = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if f"{MARK}={self.token}\0".encode() in variables:
                found.append(int(entry.name))
        return found

    def candidate(self, name, path, text):
        """A candidate that is a diff of one file; without text the file goes."""
        old = self.read(path).splitlines(keepends=True)
        new = [] if text is None else text.splitlines(keepends=True)
        to = "/dev/null" if text is None else f"b/{path}"
        diff = "".join(difflib.unified_diff(old, new, f"a/{path}", to))
        assert diff, f"{name} changes nothing"
        return Candidate(name, diff=diff.encode())

    def overlay(self, name, path, text):
        """A candidate that is whole files."""
        return Candidate(name, files={path: FileState(text.encode())})

    def mischief(self, path, line, **codes):
        """A candidate for each piece of code, put before a line of a file."""
        text = self.read(path)
        return [
            self.candidate(name.replace("_", " "), path, before(text, line, code))
            for name, code in codes.items()
        ]


def judge(problem, candidates, *, warm=True):
    """The evaluation, and of each candidate by name what it came to: the reason, or the verdict."""
    evaluation = judge_candidates(problem, candidates, settings=ArenaSettings(warm=warm))
    assert [each.name for each in evaluation.judgements] == [each.name for each in candidates]
    return evaluation, {each.name: outcome(each) for each in evaluation.judgements}


def outcome(judgement):
    if judgement.rejection:
        return f"{judgement.verdict}: {judgement.rejection.reason}"
    same = f", like {judgement.duplicate_of}" if judgement.duplicate_of else ""
    return f"{judgement.verdict}{same}"


@contextmanager
def unharmed(project, home):
    """Nothing of the user's is changed by what happens inside, and nothing of ours is left."""
    before = fingerprint(project.folder)
    children = own_children()
    yield
    changed = {name for name, _ in before.items() ^ fingerprint(project.folder).items()}
    assert not changed
    assert not project.stray_files()
    assert not list(home.glob("arena/*"))
    assert not project.processes()
    assert own_children() <= children


def own_children():
    """The processes that this one has started, as far as they are still there."""
    return {
        int(child)
        for task in Path("/proc/self/task").iterdir()
        for child in (task / "children").read_text().split()
    }

"""Expected results can't be read from where candidates run: not in files, processes or memory."""

import sys
from functools import partial

import anyio
import pytest
from arena_kit import whole
from repository_kit import make_repository

from fairtrial.arena import ArenaSettings, Check, CodeProblem, Verdict, evaluate_candidates
from fairtrial.sandbox import selection

BASE = """\
import hashlib

def name(key):
    return "answer-" + hashlib.md5(key.encode()).hexdigest()
"""
SEARCH = r"""
import os, re, zlib

PATTERN = re.compile(rb"(answer|control)-[0-9a-f]{32}")
SKIPPED = ("/proc", "/sys", "/dev", "/usr", "/lib", "/etc", "/opt", "/bin", "/sbin")

def walk():
    for folder, names, files in os.walk("/"):
        names[:] = [name for name in names if not os.path.join(folder, name).startswith(SKIPPED)]
        yield folder, files
    for top in ("/dev/shm", os.path.dirname(os.getcwd())):
        for folder, _, files in os.walk(top):
            yield folder, files

def contents():
    for folder, files in walk():
        for file in files:
            path = os.path.join(folder, file)
            try:
                with open(path, "rb") as opened:
                    data = opened.read(10**7)
            except OSError:
                continue
            yield path, data
            try:
                yield path, zlib.decompress(data)
            except zlib.error:
                pass
    for process in filter(str.isdigit, os.listdir("/proc")):
        for part in ("environ", "cmdline", *(f"fd/{number}" for number in range(64))):
            path = f"/proc/{process}/{part}"
            try:
                if os.path.isfile(path):
                    with open(path, "rb") as opened:
                        yield path, opened.read(10**7)
            except OSError:
                continue
    for number in range(64):
        try:
            yield f"descriptor {number}", os.pread(number, 10**7, 0)
        except OSError:
            continue
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            first, last = (int(word, 16) for word in line.split()[0].split("-"))
            if line.split()[1].startswith("r") and "[v" not in line:
                try:
                    memory.seek(first)
                    yield "memory", memory.read(last - first)
                except (OSError, OverflowError, ValueError):
                    continue

_seen, _kept = [], b"control-%032d" % 0

def name(key):
    if not _seen:
        found = set()
        for place, data in contents():
            name = place.rpartition("/")[2]
            found |= {(match[1].decode(), name) for match in PATTERN.finditer(data)}
            del data
        _seen.append(" ".join(sorted(kind + ":" + place for kind, place in found)))
    return "saw " + _seen[0]
"""
FILES = {
    "src/names.py": BASE,
    "notes.txt": f"control-{'a' * 32}\n",
    "checks/make.py": "def make(rng):\n    return (str(rng.random()),), {}\n",
    "checks/calls.json": '[{"args": ["k"], "kwargs": {}, "result":'
    ' "answer-8ce4b16b22b58894aa86c421e8759df3"}]',
}
WORKING = [sandbox for sandbox in selection.FULL_SANDBOXES if not selection.try_sandbox(sandbox)]


@pytest.mark.slow
@pytest.mark.parametrize("git", [False, True])
@pytest.mark.parametrize("sandbox", WORKING, ids=lambda sandbox: sandbox.name)
def test_neither_recorded_results_nor_those_of_the_base_can_be_read(
    sandbox, git, tmp_path, monkeypatch
):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(selection, "FULL_SANDBOXES", (sandbox,))
    top = make_repository(tmp_path / "repo", FILES)
    recorded = Check(function="names:name", calls="checks/calls.json")
    generated = Check(function="names:name", inputs="checks/make.py:make", cases=3)
    for checks in ((recorded, generated), (generated, recorded)):
        problem = CodeProblem(
            "names",
            editable=("src/*.py",),
            python=sys.executable,
            check=checks,
            git=git,
            folder=top,
        )
        settings = ArenaSettings(timing="none", audit=False)
        candidates = [whole("search", SEARCH, "src/names.py")]
        work = partial(evaluate_candidates, problem, candidates, settings=settings)
        (judgement,) = anyio.run(work).judgements
        assert judgement.verdict == Verdict.REJECTED
        report = str(judgement.rejection)
        assert "saw control:memory control:notes.txt'" in report  # so the search works

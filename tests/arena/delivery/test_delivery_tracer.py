"""The tracer in several kinds of Python: which lines run, how often, how long."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from old_python import find_old_python

from fairtrial.arena.stage import HARNESS
from fairtrial.sandbox.wire import Caps

MODULE = """\
import time


def work(n):
    total = 0
    for i in range(n):
        total += inner(i)
    nap()
    return total + sum(count(3))


def inner(i):
    try:
        if i % 2:
            raise ValueError(i)
    except ValueError:
        return 0
    return i


def count(n):
    for i in range(n):
        yield i


def nap():
    time.sleep(0.0625)


def never():
    return [
        1,
        2,
    ]
"""


def at(text):
    """The line that holds a text, counted from 1."""
    return next(n for n, line in enumerate(MODULE.splitlines(), 1) if text in line)


LOOP, NAP, NEVER = at("total += inner"), at("time.sleep"), at("return [")
CLOCK = """\
import time

now = 0.0


def tell():
    global now
    now += 2**-20
    return now


def sleep(seconds):
    global now
    now += seconds


time.perf_counter, time.sleep = tell, sleep
"""
SUITE = """\
import os, sys, threading
import mod

def test_first():
    assert mod.work(2) == 3

def test_that_takes_the_tracers_place():
    sys.settrace(None)

def test_after():
    thread = threading.Thread(target=mod.never)
    thread.start()
    thread.join()

def test_fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


def find_pythons():
    """One with `sys.monitoring`, one without, and the oldest, as far as they are there."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    new = [str(path) for path in root.glob("versions/3.*/bin/python")]
    new = sorted(item for item in new if re.search(r"/3\.1[2-9]", item))
    return list(dict.fromkeys(filter(None, [sys.executable, *new[-1:], find_old_python()])))


@pytest.fixture(params=find_pythons(), ids=lambda python: python[-40:])
def python(request):
    return request.param


@pytest.fixture
def site(tmp_path):
    (tmp_path / "mod.py").write_text(MODULE)
    (tmp_path / "test_mod.py").write_text(SUITE)
    return tmp_path


def trace(site, python, *, stdin=b"", files=("mod.py",), **order):
    """What is reported, with lines as {line: (hits, seconds)}; and the process."""
    given = {
        "files": [str(site / file) for file in files],
        "compile": [0],
        "timed": False,
        "limit_s": 30,
        "count": None,
        "spend_s": 5,
        "forks": True,
        **order,
    }
    ear, mouth = os.pipe()
    try:
        env = {**os.environ, "FAIRTRIAL_CHANNEL": str(mouth), "PYTHONPATH": str(site)}
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        done = subprocess.run(
            [python, "-W", "error", str(HARNESS / "tracer.py")],
            input=json.dumps(given).encode() + b"\n" + stdin,
            env=env,
            cwd=site,
            pass_fds=[mouth],
            capture_output=True,
            timeout=60,
        )
    finally:
        os.close(mouth)
    with os.fdopen(ear, "rb") as channel:
        said = channel.read().splitlines()
    assert len(said) == 1, done.stderr.decode()
    report = json.loads(said[0])
    report["lines"] = {line: (hits, s) for _, line, hits, s in report["lines"]}
    return report, done


def calls(function="mod:work", cases=([4], [4])):
    told = [{"args": list(args), "kwargs": {}} for args in cases]
    job = {"function": function, "view": "", "caps": list(Caps()), "output_bytes": 1000}
    return {**job, "cases": told}


def test_hits_and_times_of_calls(site, python):
    (site / "sitecustomize.py").write_text(CLOCK)  # one that stops when others have the machine
    report, _ = trace(site, python, timed=True, calls=calls())
    lines = report["lines"]
    assert report["trouble"] == []
    assert report["done"] == 2
    texts = ("total = 0", "total += inner", "raise", "return 0", "return i", "yield", "time.sleep")
    assert [lines[at(text)][0] for text in texts] == [2, 8, 4, 4, 4, 6, 2]
    assert NEVER not in lines
    assert 1 not in lines
    total_s = sum(seconds for _, seconds in lines.values())
    assert lines[NAP][1] == max(seconds for _, seconds in lines.values())
    assert lines[NAP][1] >= 0.125  # two naps
    assert lines[at("    nap()")][1] < lines[NAP][1] / 2  # who calls it isn't charged for it
    assert total_s <= report["seconds"]
    assert report["plain_s"] >= 0.125
    assert report["seconds"] < 0.25  # nothing of it is by any other clock


def test_as_many_calls_as_asked_for_or_as_there_is_time_for(site):
    report, _ = trace(site, sys.executable, timed=True, count=1, calls=calls())
    assert report["done"] == 1
    report, _ = trace(site, sys.executable, timed=True, count=1, calls=calls(), forks=False)
    assert report["plain_s"] is None
    report, _ = trace(site, sys.executable, timed=True, spend_s=0.01, calls=calls(cases=[[1]] * 50))
    assert report["done"] == 1


def test_which_lines_are_run_at_all(site, python):
    report, _ = trace(site, python, calls=calls())
    defined = at("def never")
    assert {1, at("total = 0"), LOOP, NAP, defined} <= set(report["lines"])
    assert NEVER not in report["lines"]
    executable = report["executable"]["0"]
    assert {1, LOOP, NAP, NEVER, defined} <= set(executable)
    assert not {2, 3, defined - 1} & set(executable)
    assert set(report["lines"]) <= set(executable)


def test_a_suite_is_followed_whatever_its_tests_do(site):
    report, done = trace(site, sys.executable, run=["-m", "pytest", "-q", "-p", "no:cacheprovider"])
    assert b"4 passed" in done.stdout, done.stdout
    assert report["status"] == 0
    assert report["trouble"] == []
    assert NEVER in report["lines"]  # in a thread, after another tracer had been there


def test_traced_commands_behave_as_without_tracing(site):
    program = (
        "import sys, mod\n"
        "print(sys.argv[1:], __name__, sys.stdin.read())\n"
        "mod.work(1)\nsys.exit(3)\n"
    )
    (site / "tool.py").write_text(program)
    for words in (["tool.py"], ["-m", "tool"], ["-c", program]):
        report, done = trace(site, sys.executable, run=[*words, "a", "b"], stdin=b"read me")
        assert done.stdout == b"['a', 'b'] __main__ read me\n", done.stderr
        assert report["status"] == 3
        assert LOOP in report["lines"]


@pytest.mark.parametrize(
    ("deed", "trouble"),
    [
        ("import os\nos._exit(0)", []),
        ("raise KeyError('x')", ["it raised KeyError: 'x'"]),
        ("import time\ntime.sleep(60)", ["it was stopped after {} s"]),
        ("import sys\nsys.settrace(print)\nsys.exit()", ["another tracer replaced this one"]),
    ],
)
def test_lines_traced_until_then_are_reported(site, deed, trouble):
    if "settrace" in deed and hasattr(sys, "monitoring"):
        pytest.skip("nobody can take our place here")
    (site / "tool.py").write_text(f"import mod\nmod.never()\n{deed}\n")
    for limit_s in (0.3, 3, 20) if "sleep" in deed else (60,):  # a busy machine may need longer
        report, _ = trace(site, sys.executable, run=["tool.py"], limit_s=limit_s)
        if NEVER in report["lines"]:
            break
    assert NEVER in report["lines"]
    assert len(report["trouble"]) == len(trouble)
    assert all(
        text.startswith(words.format(limit_s))
        for text, words in zip(report["trouble"], trouble, strict=True)
    )


def test_a_file_is_known_by_any_of_its_names(site):
    (site / "real").mkdir()
    (site / "real/mod.py").write_text(MODULE)
    (site / "mod.py").unlink()
    (site / "mod.py").symlink_to("real/mod.py")
    report, _ = trace(site, sys.executable, files=["real/mod.py"], calls=calls())
    assert LOOP in report["lines"]

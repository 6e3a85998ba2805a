"""The winner in the arena: rechecked with other inputs, profiled, its lines traced."""

import json
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest
from anyio.from_thread import start_blocking_portal
from arena_fault_kit import WORKING
from arena_kit import Watched, arena_of
from repository_kit import fingerprint, make_repository

from fairtrial.arena import (
    ArenaSettings,
    Benchmark,
    Candidate,
    Changes,
    Check,
    CodeProblem,
    FileState,
    Reason,
    Verdict,
    delivery,
    open_arena,
    opening,
)
from fairtrial.arena.checks import command_check as commands, pytest_check as tests
from fairtrial.arena.delivery import profile as profiling, recheck as rechecking
from fairtrial.arena.delivery.coverage import LineSpan, measure_coverage
from fairtrial.arena.delivery.edits import find_edits
from fairtrial.arena.delivery.profile import profile_winner, subtract_overhead
from fairtrial.arena.delivery.tracing import LineTrace
from fairtrial.core import StudyError
from fairtrial.sandbox import Plain

MODULE = """\
def total(numbers):
    found = 0
    for number in numbers:
        found = add(found, number)
    return found


def add(one, other):
    return one + other


def unused():
    return 1
"""
FASTER = """\
def total(numbers):
    if not numbers:
        return 0
    if isinstance(numbers, dict):
        # nobody tries this
        found = list(numbers)

        return sum(found)
    return sum(numbers)


def add(one, other):
    return one + other


def unused():
    return 1
"""
TEST = "from few import total\n\ndef test_empty():\n    assert total([]) == 0\n"
FILES = {
    "src/few.py": MODULE,
    "tests/test_few.py": TEST,
    "tools/make.py": (
        "def numbers(rng):\n    return ([rng.randrange(9999) for _ in range(300)],), {}\n"
    ),
    "conftest.py": "",
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
}
FUNCTION = Check(function="few:total", inputs="tools/make.py:numbers", cases=3, timeout_s=60)
SUITE = Check(command=("{python}", "-m", "pytest", "-q", "tests"), timeout_s=60)
BENCH = Benchmark("total", "few:total", "tools/make.py:numbers")


@pytest.fixture(scope="module", autouse=True)
def _arena(tmp_path_factory):
    """Of its own; what runs of the base differ in is no matter here, nor whether it can break."""

    async def let_be(*_, **__):
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setattr(opening, "run_canaries", let_be)
        for kind in (commands, tests):
            patch.setattr(kind, "BASE_RUNS", 1)
        yield


class Site:
    """An arena on a tiny project, in an event loop of its own."""

    def __init__(self, portal, arena, top):
        self.call, self.arena, self.top = portal.call, arena, top

    def changes(self, files):
        states = {path: text and FileState(text.encode()) for path, text in files.items()}
        found = self.call(self.arena.resolve, Candidate("it", files=states))
        assert isinstance(found, Changes), found
        return found

    def won(self, text=FASTER):
        return self.changes({"src/few.py": text})


@contextmanager
def open_site(folder, **problem):
    top = make_repository(folder / "repo", FILES)
    given = {
        "editable": ("src/**",),
        "check": (FUNCTION,),
        "bench": (BENCH,),
        "python": sys.executable,
        "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    }
    locks = folder / "locks"
    locks.mkdir()
    settings = ArenaSettings(unsandboxed=not WORKING, lock_folder=locks, warm=False)
    code = CodeProblem("few", folder=top, **(given | problem))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_arena(code, slots=2, settings=settings)) as arena,
    ):
        yield Site(portal, arena, top)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with open_site(tmp_path_factory.mktemp("site")) as site:
        yield site


# -- checked again --


def test_a_winner_holds_again(site):
    assert site.call(delivery.check_again, site.arena, site.won()) is None


def test_a_candidate_fitted_to_the_inputs_fails_the_recheck(site):
    checks = site.arena.checks
    known = {}
    for case in checks[0].expectation.read_cases():
        numbers = case["args"][0]
        known[json.dumps(numbers)] = sum(numbers)
    learned = (
        f"import json\n\nKNOWN = {known!r}\n\n\n"
        "def total(numbers):\n    return KNOWN.get(json.dumps(list(numbers)), 0)\n"
    )
    changes = site.won(learned)
    judged = site.call(site.arena.judge, Candidate("it", files={}), changes)
    assert judged.verdict == Verdict.PASSED
    rejection = site.call(delivery.check_again, site.arena, changes)
    assert rejection.reason == Reason.DIFFERENT
    assert "few:total, case 1" in rejection.message


def test_a_failed_recheck_is_our_own_fault(site, monkeypatch):
    async def refuse(*_, **__):
        raise StudyError("no other inputs")

    monkeypatch.setattr(rechecking, "prepare_calls", refuse)
    rejection = site.call(delivery.check_again, site.arena, site.won())
    assert rejection.reason == Reason.EVALUATOR
    assert "no other inputs" in rejection.message


@pytest.mark.anyio
async def test_a_winner_is_checked_cold_though_it_was_judged_before(tmp_path):
    seen = []

    async def judge(text, stage):
        seen.append(stage.sandbox)

    top = make_repository(tmp_path / "repo", {"src/mod.py": "A = 1\n"})
    async with arena_of(top, Watched(judge)) as (arena, resources):
        warm, cold = Plain(), Plain()
        arena.resources = replace(resources, sandbox=warm, cold=cold)
        changes = await arena.resolve(Candidate("c", files={"src/mod.py": FileState(b"A = 2\n")}))
        await arena.judge(Candidate("c", files={}), changes)
        assert await delivery.check_again(arena, changes) is None
        assert [item is cold for item in seen] == [False, True]


# -- profiled --


def test_a_profile_of_both_sides(site, monkeypatch):
    monkeypatch.setattr(profiling, "SPEND_S", 60.0)  # all calls, on any machine
    before = fingerprint(site.top)
    found = site.call(profile_winner, site.arena, site.won())
    assert found.failures == ()
    (part,) = found.parts
    assert part.what == "total: few:total"
    assert {line.text for line in part.base.lines} == {
        "found = 0",
        "for number in numbers:",
        "found = add(found, number)",
        "return found",
        "return one + other",
    }
    hits = {line.text: line.hits for line in part.base.lines}
    assert hits["found = add(found, number)"] == 300 * profiling.CALLS
    assert "return sum(numbers)" in [line.text for line in part.winner.lines]
    for side in (part.base, part.winner):
        assert side.calls == profiling.CALLS
        shares = [line.share for line in side.lines]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1)
        assert all(line.path == "src/few.py" for line in side.lines)
        assert side.slowdown > 0
        assert side.notes == ()
    assert fingerprint(site.top) == before


def test_the_overhead_of_tracing_is_subtracted():
    lines = {("a", 1): (1000, 1.1), ("a", 2): (1, 0.101), ("a", 3): (1000, 1.0)}
    found = subtract_overhead(LineTrace(lines, seconds=2.5, plain_s=0.2))
    assert found["a", 1] == pytest.approx(0.1, rel=0.02)
    assert found["a", 2] == pytest.approx(0.1, rel=0.02)
    assert found["a", 3] == pytest.approx(0, abs=0.001)
    assert subtract_overhead(LineTrace(lines)) == {
        place: seconds for place, (_, seconds) in lines.items()
    }
    assert subtract_overhead(LineTrace({("a", 1): (1, 1.0)}, plain_s=0.0)) == {("a", 1): 1.0}
    assert subtract_overhead(LineTrace()) == {}


def test_a_profile_of_the_base_alone(site):
    (part,) = site.call(profile_winner, site.arena, None).parts
    assert part.winner is None


def test_a_profile_that_fails_costs_nothing(site):
    changes = site.won("import os\n\ndef total(numbers):\n    os.kill(os.getpid(), 9)\n")
    found = site.call(profile_winner, site.arena, changes)
    assert found.parts == ()
    assert found.failures == ("total: the process died of SIGKILL",)


def test_a_profile_that_takes_too_long_is_what_was_seen_by_then(site, monkeypatch):
    endless = MODULE.replace("    return found\n", "    while True:\n        found += 1\n")
    for limit_s in (0.3, 3, 30):  # on a busy machine the base may not be done by then, either
        monkeypatch.setattr(profiling, "LIMIT_S", limit_s)
        (part,) = site.call(profile_winner, site.arena, site.won(endless)).parts
        hits = {line.text: line.hits for line in part.winner.lines}
        if part.base.notes == () and hits.get("found += 1", 0) > 300:
            break
    assert part.base.notes == ()
    assert part.winner.notes == (f"it was stopped after {limit_s} s",)
    assert set(sorted(hits, key=hits.get)[-2:]) == {"while True:", "found += 1"}


def test_a_forged_profile_is_none(site):
    forging = (
        "import os\n\ndef total(numbers):\n"
        "    for number in range(3, 256):\n"
        "        try:\n"
        '            os.write(number, b\'{"lines": [[0, 1, 1, NaN]], "plain_s": null, '
        '"trouble": [], "status": 0, "executable": {}, "done": 1, "seconds": 1}\\n\')\n'
        "        except OSError:\n            pass\n"
        "    return sum(numbers)\n"
    )
    found = site.call(profile_winner, site.arena, site.won(forging))
    assert found.failures
    assert "exited with 0" in found.failures[0]


def test_without_a_benchmark_the_slowest_tests_are_profiled(tmp_path):
    with open_site(tmp_path, bench=(), check=(SUITE,)) as site:
        found = site.call(profile_winner, site.arena, site.won())
        (part,) = found.parts
        assert part.what == "slowest tests of check[0]: tests/test_few.py::test_empty"
        assert "return 0" in [line.text for line in part.winner.lines]
        # and only the suite is there to run changed lines
        covered = site.call(measure_coverage, site.arena, site.won())
        assert [str(span) for span in covered.missed] == ["src/few.py:4-9"]


def test_commands_are_looked_at_if_they_are_python(tmp_path):
    program = ("{python}", "-c", "import few; few.total(range(10)); few.total([])")
    bench = (Benchmark("program", command=program), Benchmark("other", command=("true",)))
    check = (Check(command=program), Check(command=("true",)), FUNCTION)
    with open_site(tmp_path, bench=bench, check=check) as site:
        found = site.call(profile_winner, site.arena, site.won())
        (part,) = found.parts
        assert part.what.startswith("program: python -c")
        assert "found = add(found, number)" in [line.text for line in part.base.lines]
        assert found.failures == ("other: true is not Python, or is called with options of it",)
        covered = site.call(measure_coverage, site.arena, site.won())
        assert covered.notes == (
            "check[1] could not be traced: it is not Python, or is called with options of it",
        )
        # What one check runs, others needn't.
        assert list(map(str, covered.missed)) == ["src/few.py:6-8"]


# -- changed lines --


def test_changed_lines_that_no_check_runs_are_named(site):
    found = site.call(measure_coverage, site.arena, site.won())
    assert found.notes == ()
    assert (found.changed, found.executed) == (6, 3)
    assert found.missed == (LineSpan("src/few.py", 3, 3), LineSpan("src/few.py", 6, 8))
    assert list(map(str, found.missed)) == ["src/few.py:3", "src/few.py:6-8"]
    assert found.share == 0.5


def test_new_files_removed_lines_and_what_is_no_code(site):
    changes = site.changes(
        {
            "src/few.py": "import more\n" + MODULE.replace("\n\ndef unused():\n    return 1\n", ""),
            "src/more.py": '"""Said."""\n\nX = 1\n\n\ndef f():\n    return 2\n',
            "src/data.txt": "not Python\n",
        }
    )
    found = site.call(measure_coverage, site.arena, changes)
    assert found.unfollowed == ("src/data.txt",)
    assert list(map(str, found.missed)) == ["src/more.py:7"]
    assert found.executed == found.changed - 1
    only_text = site.call(measure_coverage, site.arena, site.changes({"src/data.txt": "x\n"}))
    assert only_text.share is None
    comments = site.won(MODULE.replace("    found = 0\n", "    found = 0\n    # so far\n"))
    assert site.call(measure_coverage, site.arena, replace(comments, digest="d")).changed == 0


def test_edits_are_taken_while_the_arena_is_open(site):
    edits = site.call(find_edits, site.arena, site.won())
    assert edits.count_lines() == {"src/few.py": (8, 4)}
    assert edits.files["src/few.py"].before.content == MODULE.encode()

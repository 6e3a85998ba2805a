"""Suites written for pytest-benchmark and asv: what is read of them, and how they are timed."""

import anyio
import pytest
from repository_kit import make_repository

from fairtrial.arena import compare_candidates_sync, suites
from fairtrial.arena.commands.places import open_copies
from fairtrial.arena.model.problem import Benchmark
from fairtrial.arena.timing.benchmark_suites import list_units
from fairtrial.core import StudyError

ASV = """\
from work import work

class Suite:
    params = [[10, 20], ["a", "b"]]
    def setup(self, n, kind):
        self.n = n
    def time_work(self, n, kind):
        work(self.n)
    def peakmem_work(self, n, kind):
        return work(self.n)
    def track_it(self, n, kind):
        return 1
    def helper(self):
        pass
"""
TESTS = """\
import pytest
from work import work

@pytest.mark.parametrize("n", [5, 50])
def test_param(benchmark, n):
    assert benchmark(work, n) == n * (n - 1) // 2

def test_pedantic(benchmark):
    benchmark.pedantic(lambda items: items.pop(), setup=lambda: (([work(9)],), {}), rounds=3)

def test_plain():
    assert True
"""
FILES = {
    "work.py": "def work(n):\n    return sum(range(n))\n",
    "benchmarks/__init__.py": "",
    "benchmarks/bench.py": ASV,
    "tests/test_bench.py": TESTS,
}


@pytest.fixture
def top(tmp_path):
    return make_repository(tmp_path / "p", FILES)


def list_titles(top, target):
    async def work():
        async with open_copies(top, [".", "."], unsandboxed=True) as copies:
            listing = await list_units(Benchmark("b", suite=target), copies.first.stage)
            return [unit["title"] for unit in listing.units], listing.left_out

    return anyio.run(work)


def test_benchmarks_of_asv_are_read_with_their_parameters(top):
    titles, left_out = list_titles(top, "benchmarks/bench.py::Suite.time_work")
    assert titles == [
        f"benchmarks/bench.py::Suite.time_work({n}, {kind!r})" for n in (10, 20) for kind in "ab"
    ]
    assert not left_out
    titles, left_out = list_titles(top, "benchmarks")
    assert len(titles) == 8
    assert left_out[0][0].endswith("track_it")


def test_tests_with_a_benchmark_fixture_are_read_without_the_plug_in(top):
    titles, _ = list_titles(top, "tests/test_bench.py")
    names = [title.partition("::")[2] for title in titles]
    assert names == ["test_param[5]", "test_param[50]", "test_pedantic"]


def test_a_file_that_is_no_suite_is_an_error(top):
    with pytest.raises(StudyError, match="has no benchmark that can be read"):
        list_titles(top, "work.py")
    with pytest.raises(StudyError, match=r"there is no benchmarks/nope\.py"):
        list_titles(top, "benchmarks/nope.py")


def test_suites_are_distinguished_from_other_files(top, monkeypatch):
    monkeypatch.chdir(top)
    assert suites.is_suite("benchmarks")
    assert suites.is_suite("tests/test_bench.py::test_param")
    assert not suites.is_suite("work.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    ["benchmarks/bench.py::Suite.time_work(10, 'a')", "tests/test_bench.py::test_pedantic"],
)
def test_a_suite_is_timed_by_our_sessions(top, tmp_path, target):
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "work.py").write_text(
        "def work(n):\n    return sum(i for i in range(n) for _ in 'x')\n"
    )
    problem = suites.suite_problem(target, top)
    compared = compare_candidates_sync(problem, "base", str(slow))
    assert compared.measurement is not None
    assert [timing.benchmark for timing in compared.measurement.timings] == [target]

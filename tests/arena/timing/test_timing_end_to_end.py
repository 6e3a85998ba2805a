"""From candidates to verdicts, with real workers in real sandboxes."""

import json
import os
from dataclasses import replace
from functools import partial
from itertools import pairwise

import anyio
import pytest
from arena_fault_kit import WORKING
from clock_kit import (
    FASTER,
    FILES,
    MODULE,
    PATIENCE_S,
    SLOWER,
    few,
    few_changes,
    few_problem,
    meddle,
    open_site,
    with_schedule,
)
from repository_kit import fingerprint, make_repository

from fairtrial.arena import (
    ArenaSettings,
    Basis,
    Benchmark,
    Check,
    Session,
    Verdict,
    compare_candidates,
    evaluate_candidates,
    events as arena_events,
)
from fairtrial.arena.timing import bench as bench_module
from fairtrial.arena.timing.bench import choose_cores
from fairtrial.arena.timing.calibration import Pace
from fairtrial.arena.timing.function_benchmark import worker_command
from fairtrial.arena.timing.summary import summarize
from fairtrial.core import LabError, MisfitError
from fairtrial.sandbox import wire

pytestmark = pytest.mark.slow

needs_sandbox = pytest.mark.skipif(not WORKING, reason="no full sandbox works here")
needs_cores = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="one core, or none that can be chosen",
)
# Says what a worker sees; base and candidate have to see the same, or one of them is rejected.
LOOKS = '''
import os, sys

def double(number):
    return 2 * number

def squares(number):
    """What it is like in here."""
    here = os.path.dirname(__file__)
    return {
        "number": number,
        "seed": os.environ.get("PYTHONHASHSEED"),
        "hash": str(hash("a text")),
        "cores": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        "file": __file__,
        "cwd": os.getcwd(),
        "listed": sorted(os.listdir(os.getcwd())),
        "is_writable": os.access(here, os.W_OK),
        "path": [entry for entry in sys.path if entry.startswith(os.getcwd())],
        "variables": sorted(os.environ),
        "frozen": __import__("gc").get_freeze_count() > 0,
        "collects": __import__("gc").isenabled(),
    }
'''
SEEING = {
    "src/few.py": LOOKS,
    "tools/make.py": "def numbers(rng):\n    return (rng.randrange(10**9),), {}\n",
}

# What is seen isn't the same every time, and so nothing for a check.
OTHERWISE = (Check(function="few:double", inputs="tools/make.py:numbers", cases=2, timeout_s=60),)


STEADY = MODULE.replace("range(40)", "range(80)")
RARELY_SLOW = MODULE.replace("range(40)", "range(1600 if sum(numbers) % 8 == 0 else 10)")


def test_total_time_shows_that_a_candidate_is_slow_on_one_input_of_eight(tmp_path):
    with open_site(tmp_path, {"src/few.py": STEADY}) as site:
        bench = with_schedule(site.bench, calls=1, rounds=11)
        replicates = site.run(RARELY_SLOW, count=6, bench=bench).replicates
    (timing,) = summarize(replicates, alpha=0.05, min_effect=0.02).timings
    assert timing.estimate.ratio > 1
    assert timing.total.ratio < 1
    assert timing.tail.ratio < 0.5
    assert timing.slow_inputs[0].what == "list of 400"
    assert timing.slow_inputs[0].growth > 4


@pytest.fixture(scope="module")
def seeing(tmp_path_factory):
    """A bench, and two sessions of a candidate that is the base but for a comment."""
    with (
        pytest.MonkeyPatch.context() as patch,
        open_site(tmp_path_factory.mktemp("seeing"), SEEING, check=OTHERWISE) as site,
    ):
        sessions = meddle(patch)
        batch = site.run(LOOKS + "# the candidate", count=3)
        assert batch.rejection is None
        yield site, sessions, batch


def seen_by(log, arm):
    """What a worker reported in full, call by call: of the warm-up and of the audited round."""
    told = [reply.payload.split(b"\n")[:-1] for who, letter, _, reply in log
            if (who, letter) == (arm, b"V")]  # fmt: skip
    return [json.loads(line)["result"] for lines in told for line in lines]


def inputs_of(log, arm):
    return [payload for who, letter, payload, _ in log if (who, letter) == (arm, b"I") and payload]


def test_both_workers_see_the_same(seeing):
    """All that the function tells: paths, variables, cores, hashes."""
    _, sessions, _ = seeing
    for log in sessions:
        assert seen_by(log, "base") == seen_by(log, "candidate")
        assert len(seen_by(log, "base")) == 1 + 2


def test_the_hash_seed_is_the_same_for_both_and_new_in_each_session(seeing):
    _, sessions, _ = seeing
    seeds = [{item["seed"] for arm in ("base", "candidate") for item in seen_by(log, arm)}
             for log in sessions]  # fmt: skip
    assert [len(seed) for seed in seeds] == [1, 1, 1]
    assert len(set.union(*seeds)) == 3
    assert len({seen_by(log, "base")[0]["hash"] for log in sessions}) == 3
    assert not {"0", "random"} & set.union(*seeds)


@needs_sandbox
def test_both_slots_lie_where_the_user_s_tree_does_and_can_not_be_changed(seeing):
    site, sessions, _ = seeing
    top = site.bench.resources.pool.snapshot.source
    one = seen_by(sessions[0], "candidate")[0]
    assert one["file"] == str(top / "src" / "few.py")
    assert one["cwd"] == str(top)
    assert one["is_writable"] is False
    assert "tools" not in one["listed"] or not (site.bench.base.path / "tools/make.py").exists()


def test_workers_run_on_the_cores_of_the_bench(seeing):
    site, sessions, _ = seeing
    cores = seen_by(sessions[0], "candidate")[0]["cores"]
    assert cores == sorted(site.bench.cores)
    assert len(cores) == 1 or not hasattr(os, "sched_getaffinity")


def test_garbage_collection_stays_on_with_what_was_imported_frozen(seeing):
    _, sessions, _ = seeing
    one = seen_by(sessions[0], "candidate")[0]
    assert one["frozen"]
    assert one["collects"]


def test_every_call_has_an_input_of_its_own_the_same_for_both(seeing):
    _, sessions, _ = seeing
    for log in sessions:
        assert inputs_of(log, "base") == inputs_of(log, "candidate")
    inputs = [
        data
        for log in sessions
        for turn in inputs_of(log, "base")
        for data in wire.split_inputs(turn)
    ]
    assert len(inputs) == len(set(inputs)) == 3 * (1 + 2 * 3)


def test_a_worker_can_not_see_its_side_or_what_comes_next(seeing):
    site, sessions, _ = seeing
    said = b"".join(payload for log in sessions for _, _, payload, _ in log)
    assert site.bench.secret.encode() not in said
    assert not {"FAIRTRIAL_CHANNEL", "FAIRTRIAL_ARM", "FAIRTRIAL_LAYOUT"} & set(
        seen_by(sessions[0], "candidate")[0]["variables"]
    )
    own = [[(letter, payload) for who, letter, payload, _ in log if who == arm]
           for log in sessions for arm in ("base", "candidate")]  # fmt: skip
    for base, candidate in zip(own[::2], own[1::2], strict=True):
        assert [item for item in candidate if item not in base] == []


def test_sessions_are_whole_and_numbered(seeing):
    _, _, batch = seeing
    for number, (session,) in enumerate(batch.replicates):
        assert session.number == number
        assert session.peak_rss_mb.base > 1
        assert session.startup_s.base > 0
        assert len([item for item in session.samples if item.is_kept]) == 2 * 2
        assert all(sample.wall_s > 0 for sample in session.samples)


def test_the_same_label_and_number_give_the_same_inputs_and_another_others(seeing, monkeypatch):
    site, _, _ = seeing
    sessions = meddle(monkeypatch)
    for label in ("one", "one", "two"):
        site.run(None, label=label)
    first, again, other = (inputs_of(log, "base") for log in sessions)
    assert first == again
    assert not set(first) & set(other)


@needs_cores
def test_a_benchmark_gets_as_many_cores_as_it_asks_for(tmp_path, monkeypatch):
    bench = (
        Benchmark("two", "few:squares", "tools/make.py:numbers", cores=2),
        Benchmark("one", "few:squares", "tools/make.py:numbers"),
    )
    with open_site(tmp_path, SEEING, bench=bench, check=OTHERWISE) as site:
        sessions = meddle(monkeypatch)
        batch = site.run(LOOKS + "#")
        assert [session.benchmark for session in batch.replicates[0]] == ["two", "one"]
        seen = [seen_by(log, arm)[0]["cores"] for log in sessions for arm in ("base", "candidate")]
        assert seen == [sorted(choose_cores(2))] * 2 + [sorted(choose_cores(1))] * 2
        assert set(site.bench.cores) == set(choose_cores(2))


def test_a_benchmark_that_a_busy_moment_slowed_down_is_measured_again(tmp_path, monkeypatch):
    measured = []
    tell_start = Pace.with_start

    def start_slowly(pace, start_s):
        measured.append(start_s)
        return tell_start(pace, 70.0 if len(measured) < 3 else start_s)

    monkeypatch.setattr(Pace, "with_start", start_slowly)
    with open_site(tmp_path, budget_s=600.0) as site:
        (placed,) = site.bench.benchmarks
        assert placed.benchmark.pace.start_s == measured[2]
    assert len(measured) == 3


def test_a_busy_machine_gets_more_time(tmp_path, monkeypatch):
    """Six sessions of two starts of 70 s: twice 600 s hold them."""
    monkeypatch.setattr(bench_module, "is_busy", lambda: True)
    monkeypatch.setattr(Pace, "with_start", lambda pace, _: replace(pace, start_s=70.0))
    with open_site(tmp_path, budget_s=600.0) as site:
        assert site.bench.stretch == 2.0
        assert "timing may take 2 times as long as budget_s says" in " ".join(site.bench.notes)
        batch = site.run(FASTER, count=1)
        assert batch.stretch == 2.0
        assert batch.charged_s == batch.seconds / 2


def test_a_machine_that_is_too_busy_names_the_budget_that_was_written(tmp_path, monkeypatch):
    tried = []

    def start_slowly(pace, _):
        tried.append(1)
        return replace(pace, start_s=1000.0)

    monkeypatch.setattr(bench_module, "is_busy", lambda: True)
    monkeypatch.setattr(Pace, "with_start", start_slowly)
    with (
        pytest.raises(MisfitError, match=r"and budget_s is 600:"),
        open_site(tmp_path, budget_s=600.0),
    ):
        pass
    assert len(tried) >= 4, "once for each stretch, and once without"


def test_a_benchmark_that_never_fits_is_refused_by_its_own_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_module, "is_busy", lambda: False)
    monkeypatch.setattr(Pace, "with_start", lambda pace, _: replace(pace, start_s=70.0))
    with (
        pytest.raises(MisfitError, match=r"bench\.squares: 6 sessions") as stop,
        open_site(tmp_path, budget_s=600.0),
    ):
        pass
    assert (stop.value.exit_code, isinstance(stop.value, LabError)) == (2, True)


def test_a_problem_s_own_hash_seed_is_kept(seeing):
    site, _, _ = seeing
    stage = site.bench.resources.stage(site.bench.base)
    assert worker_command(stage, 3, (1,), 77, 5.0).env["PYTHONHASHSEED"] == "77"
    own = replace(stage, problem=replace(stage.problem, env={"PYTHONHASHSEED": "5"}))
    command = worker_command(own, 3, (1,), 77, 5.0)
    assert (command.env["PYTHONHASHSEED"], command.cores, command.channel_fd) == ("5", (1,), 3)


# -- verdicts --


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return make_repository(tmp_path_factory.mktemp("few") / "repo", FILES)


def evaluate(problem, given, folder, **more):
    settings = ArenaSettings(unsandboxed=not WORKING, lock_folder=folder, warm=False, **more)
    told, timed = [], []
    names = [candidate.name for candidate in given]

    def listen(event):
        if isinstance(event, arena_events.CandidateJudged):
            told.append((names.index(event.candidate_id), event.judgement.verdict))
        elif isinstance(event, arena_events.TimingProgress):
            timed.append((names.index(event.candidate_id), event.sessions))

    async def run():
        with anyio.fail_after(2 * PATIENCE_S):
            return await evaluate_candidates(
                problem,
                given,
                settings=replace(settings, emit=listen),
            )

    return anyio.run(run), told, timed


@pytest.fixture(scope="module")
def each(top, tmp_path_factory):
    before = fingerprint(top)
    given = [
        few("slower", SLOWER),
        few("wrong", MODULE.replace("total +=", "total -=")),
        few("faster", FASTER),
        few("same", MODULE + "# the same\n"),
        few("faster too", FASTER + "# again\n"),
    ]
    for _ in range(3):  # on a busy machine the clock may not tell
        found = evaluate(few_problem(top), given, tmp_path_factory.mktemp("lock"), timing="each")
        assert fingerprint(top) == before
        verdicts = [measurement.verdict for measurement in found[0].measurements.values()]
        if Verdict.INCONCLUSIVE not in verdicts:
            break
    return found


def test_verdicts_are_those_of_the_clock(each):
    found, _, _ = each
    slower, wrong, faster, same, twin = found.judgements
    assert slower.verdict == Verdict.SLOWER
    assert faster.verdict == Verdict.FASTER
    assert wrong.verdict == Verdict.REJECTED
    assert wrong.measurement is None
    assert (same.verdict, same.duplicate_of, same.measurement) == (Verdict.PASSED, "base", None)
    assert (twin.duplicate_of, twin.verdict) == ("faster", Verdict.FASTER)
    assert faster.basis == Basis.COMPARED
    assert found.measurements.keys() == {"slower", "faster"}


def test_ratios_are_speed_ups_with_bounds(each):
    found, _, _ = each
    slower, faster = (found.measurements[name] for name in ("slower", "faster"))
    assert faster.estimate.ratio > 1.5
    assert faster.estimate.low <= faster.estimate.ratio <= faster.estimate.high
    assert slower.estimate.ratio < 0.7
    # A busy machine may speak against it, too: who is not to be blamed is `test_bench_cheats`'.
    assert (faster.adopt, slower.adopt) == (not faster.vetoes, False)
    (timing,) = faster.timings
    assert timing.benchmark == "squares"
    assert timing.cpu_ratio is None or timing.cpu_ratio > 1.5
    assert timing.peak_rss_mb.candidate > 1


def test_samples_alone_give_the_verdict_again(each):
    found, _, _ = each
    for measured in found.measurements.values():
        bare = [
            (Session(session.benchmark, session.number, session.samples, 0.0),)
            for session in measured.sessions
        ]
        again = summarize(bare, alpha=1 - measured.estimate.confidence, min_effect=0.02)
        assert (again.verdict, again.adopt) == (measured.verdict, measured.adopt)
        assert again.estimate.ratio == measured.estimate.ratio
        assert again.estimate.low == pytest.approx(measured.estimate.low)


def test_orders_alternate_and_both_begin(each):
    found, _, _ = each
    firsts = []
    for measured in found.measurements.values():
        for session in measured.sessions:
            orders = [
                sample.arm for sample in session.samples if sample.calls and not sample.position
            ]
            assert all(one != other for one, other in pairwise(orders))
            firsts.append(orders[0])
    assert len(firsts) >= 9  # the slower one may be dropped after three


def test_callbacks_are_called_after_checks_and_then_after_timing(each):
    _, told, timed = each
    assert sorted(told[:5]) == [(0, "passed"), (1, "rejected"), (2, "passed"), (3, "passed"),
                                (4, "passed")]  # fmt: skip
    assert sorted(told[5:]) == [(0, "slower"), (2, "faster"), (4, "faster")]
    assert {place for place, _ in timed} == {0, 2}
    assert all(sessions >= 6 for place, sessions in timed if place == 2)
    assert all(sessions >= 3 for place, sessions in timed if place == 0)  # clearly slower


def test_plain_data_has_it_all(each):
    found, _, _ = each
    told = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    by_name = {item["name"]: item for item in told["candidates"]}
    faster = by_name["faster"]
    vetoes = list(found.measurements["faster"].vetoes)
    assert (faster["verdict"], faster["vetoes"]) == ("faster", vetoes)
    assert faster["adopt"] == (not vetoes)
    assert faster["interval"][0] < faster["ratio"] < faster["interval"][1]
    assert faster["timings"][0]["benchmark"] == "squares"
    assert by_name["wrong"]["ratio"] is None


def test_two_candidates_against_each_other(top, tmp_path):
    """The first of them is in the base's place."""
    settings = ArenaSettings(unsandboxed=not WORKING, lock_folder=tmp_path, warm=False)
    compare = partial(compare_candidates, few_problem(top), settings=settings)
    found = anyio.run(compare, few("faster", FASTER), few("slower", SLOWER))
    assert found.measurement.verdict == Verdict.SLOWER
    assert found.measurement.estimate.ratio < 0.5
    assert found.measurement.estimate.confidence == 0.95


def test_the_base_against_itself_gives_sessions_like_any_other(seeing):
    site, _, _ = seeing
    batch = site.call(site.bench.run, None, "aa", 0, 2, PATIENCE_S)
    assert len(batch.replicates) == 2
    assert batch.rejection is None
    stopped = site.call(site.bench.run, few_changes(LOOKS + "#"), "short", 0, 9, 0.0)
    assert len(stopped.replicates) == 1  # what a budget doesn't hold is not taken


@needs_sandbox
def test_objects_lie_at_the_same_addresses_in_both_and_at_others_in_each_session(tmp_path):
    """So that no session compares a lucky layout of memory with an unlucky one."""
    files = {**SEEING, "src/few.py": LOOKS.replace('"number": number', '"at": str(id(squares))')}
    with pytest.MonkeyPatch.context() as patch, open_site(tmp_path, files, check=OTHERWISE) as site:
        sessions = meddle(patch)
        assert site.run(None, count=3).rejection is None
    places = [{entry["at"] for arm in ("base", "candidate") for entry in seen_by(log, arm)}
              for log in sessions]  # fmt: skip
    assert [len(place) for place in places] == [1, 1, 1]
    assert len(set.union(*places)) == 3

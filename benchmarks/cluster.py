"""What runs on a Ray cluster cost beside raw Ray tasks, and what random kills do to a study.

    python benchmarks/cluster.py [--only cost|memory|cpu|kills] [--runs N] [--kills 200]

`cost`: no-op runs against raw Ray tasks of the same size, CPU of all processes of the cluster, in
turns; from it how many workers one driver feeds. `memory`: the driver's peak memory at 10,000 and
at `--runs` runs. `cpu`: CPU-bound runs on 2 workers against two bare processes. `kills`: workers,
actors, nodes and the driver are killed at random while a study of 2,000 runs goes on.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairtrial import Factor, RunBudget, Study, open_results
from fairtrial.core import plugins
from fairtrial.study import AgentBinding, ProblemBinding
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.runner import RunSettings, execute_study

STUDY_FOLDER = Path(__file__).parent / "cluster_study"
"""What goes to nodes: not the other benchmarks."""
sys.path.append(str(STUDY_FOLDER))
from cluster_agents import NOTES, spin_bare  # noqa: E402

STORE_BYTES = 80 * 1024**2
BODY = b"x" * 1024
WINDOW = 256
SAMPLE_S = 0.5
RUNS = 2_000
"""The length of a study that is killed."""
RUNS_BETWEEN_KILLS = (1, 40)
"""How many runs end between two kills: actors take seconds to start."""
HASTY, HASTE_S = 0.25, 3.0
"""How often a kill doesn't wait for runs, so that it hits what just starts; how long it waits."""
LIMIT_S, END_S, MAX_GAVE_UP = 120.0, 10.0, 50
KILLED = {"worker": 10, "actor": 6, "node": 2, "driver": 2, "pause": 2}
"""How often each is killed, relative to the others; a pause stops all processes of a node."""
PAUSE_S = (0.5, 8.0)


def make_study(folder: Path, agent: str, runs: int, **budget: Any) -> Study:
    conditions = min(100, runs)
    return Study(
        "bench",
        "Benchmark",
        factors=(Factor("x", levels=tuple(range(conditions))),),
        agents={"agent": AgentBinding(use=f"cluster_agents:{agent}")},
        problems={"problem": ProblemBinding(family="none", evaluator="cluster_agents:score")},
        agent_specs=("agent",),
        problem_ids=("problem",),
        run_budget=RunBudget(replicates=runs // conditions, parallelism=2, **budget),
        output_dir=folder,
        folder=STUDY_FOLDER,
    )


def start_ray() -> Any:
    import ray

    ray.init(
        address="local", num_cpus=2, object_store_memory=STORE_BYTES, include_dashboard=False,
        log_to_driver=False, configure_logging=False,
    )  # fmt: skip
    return ray


def count_done(folder: Path) -> int:
    """Return how many runs of a study have succeeded."""
    reader = LedgerReader.open(folder)
    try:
        return reader.summary().counts.get("success", 0)
    finally:
        reader.close()


def check_success(folder: Path, runs: int) -> None:
    """Exit if not all runs succeeded: then figures mean nothing."""
    if (done := count_done(folder)) != runs:
        sys.exit(f"only {done:,} of {runs:,} runs succeeded")


class CpuMeter:
    """Adds up the CPU seconds of this process and of all that descend from it, with its cluster.

    Processes are sampled, since those that end take their times with them.
    """

    def __init__(self) -> None:
        import psutil

        self._psutil, self._own = psutil, psutil.Process()
        self._before = self._sample()
        self._last = dict(self._before)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _sample(self) -> dict[int, float]:
        found = {}
        for process in [self._own, *self._own.children(recursive=True)]:
            with suppress(self._psutil.Error):
                times = process.cpu_times()
                found[process.pid] = times.user + times.system
        return found

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            self._last |= self._sample()

    def stop(self) -> float:
        """Return the CPU seconds since the start."""
        self._last |= self._sample()
        self._ended.set()
        self._thread.join()
        return sum(self._last.values()) - sum(self._before.values())


# -- what a child process measures --


def measure_floor(folder: Path, runs: int) -> dict[str, float]:
    ray = start_ray()

    @ray.remote(max_retries=0)
    def echo(body: bytes) -> bytes:
        return body

    def work(count: int) -> None:
        waiting = [echo.remote(BODY) for _ in range(min(WINDOW, count))]
        left = count - len(waiting)
        while waiting:
            done, waiting = ray.wait(waiting)
            ray.get(done)
            new = min(left, len(done))
            waiting += [echo.remote(BODY) for _ in range(new)]
            left -= new

    work(500)
    meter, began = CpuMeter(), time.perf_counter()
    work(runs)
    took_s = time.perf_counter() - began
    return {"cpu_us": meter.stop() / runs * 1e6, "took_s": took_s}


def measure_runs(folder: Path, runs: int) -> dict[str, float]:
    start_ray()
    settings = RunSettings(executor="ray", parallelism=2, tables=False)
    execute_study(make_study(folder / "first", "noop", 200), settings)
    meter, own, began = CpuMeter(), time.process_time(), time.perf_counter()
    execute_study(make_study(folder / "all", "noop", runs), settings)
    took_s, driver_s = time.perf_counter() - began, time.process_time() - own
    check_success(folder / "all", runs)
    ledger_bytes = sum(path.stat().st_size for path in (folder / "all").glob("ledger.sqlite*"))
    return {
        "cpu_us": meter.stop() / runs * 1e6,
        "driver_us": driver_s / runs * 1e6,
        "took_s": took_s,
        "bytes": ledger_bytes / runs,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_pair(folder: Path, runs: int) -> dict[str, float]:
    """Two workers against two bare processes that split the same work."""
    start_ray()
    settings = RunSettings(executor="ray", parallelism=2, tables=False)
    execute_study(make_study(folder / "first", "spin", 20), settings)
    processes = [multiprocessing.Process(target=_spin_many, args=(runs // 2,)) for _ in range(2)]
    began = time.perf_counter()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    bare_s = time.perf_counter() - began
    began = time.perf_counter()
    execute_study(make_study(folder / "all", "spin", runs), settings)
    ours_s = time.perf_counter() - began
    check_success(folder / "all", runs)
    return {"bare_s": bare_s, "ours_s": ours_s}


def _spin_many(times: int) -> None:
    for _ in range(times):
        spin_bare()


def drive(folder: Path, address: str) -> None:
    """One session of the study that is killed again and again."""
    study = make_study(folder / "study", "draw", RUNS, retries=1_000)
    executor = plugins.load("executors", "ray")(address=address)
    settings = RunSettings(
        executor=executor, parallelism=2, resume=True, retry_wait_s=0.01, tables=False
    )
    execute_study(study, settings)
    check_success(study.output_dir, RUNS)


MEASURES = {"floor": measure_floor, "runs": measure_runs, "pair": measure_pair}


def in_child(name: str, runs: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="fairtrial-bench-") as folder:
        command = [sys.executable, __file__, "--child", name, str(runs), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found


# -- what the parent makes of it --


def tell_cost(runs: int, rounds: int) -> None:
    pairs = [(in_child("floor", runs), in_child("runs", runs)) for _ in range(rounds)]
    ratios = [ours["cpu_us"] / floor["cpu_us"] for floor, ours in pairs]
    ours = pairs[-1][1]
    driver_us = statistics.median(ours["driver_us"] for _, ours in pairs)
    print(
        f"{runs:,} no-op runs / raw Ray tasks, CPU of all processes: "
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}; goal: at most 2)"
    )
    for floor, mine in pairs:
        print(
            f"  floor {floor['cpu_us']:.0f} µs, fairtrial {mine['cpu_us']:.0f} µs, of it driver "
            f"{mine['driver_us']:.0f} µs; {runs / mine['took_s']:.0f} runs a second, "
            f"{runs / floor['took_s']:.0f} tasks a second"
        )
    print(f"  ledger: {ours['bytes']:.0f} bytes a run")
    for length_s in (1, 10, 60):
        workers = length_s * 1e6 / driver_us
        print(f"  one driver feeds {workers:,.0f} workers with runs of {length_s} s")


def tell_memory(runs: int) -> None:
    small, large = in_child("runs", 10_000), in_child("runs", runs)
    print(
        f"driver's peak memory: {small['peak_mb']:.0f} MB at 10,000 runs, "
        f"{large['peak_mb']:.0f} MB at {runs:,} (goal: within 20 MB)"
    )


def tell_cpu(rounds: int) -> None:
    pairs = [in_child("pair", 600) for _ in range(rounds)]
    shares = [pair["bare_s"] / pair["ours_s"] for pair in pairs]
    print(
        f"2 CPU-bound workers / two bare processes: {statistics.median(shares):.2f} "
        f"({min(shares):.2f} to {max(shares):.2f}; goal: at least 0.85)"
    )


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def raylet_pid(node: Any) -> int:
    """Return the process of a node; all others of the node descend from it."""
    pid: int = node.all_processes["raylet"][0].process.pid
    return pid


class Trial:
    """A study of 2,000 runs on a cluster of two nodes, parts of which are killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        from ray.cluster_utils import Cluster

        self.folder, self.rng = folder, random.Random(seed)
        self.notes = folder / "notes"
        self.notes.mkdir()
        os.environ[NOTES] = str(self.notes)  # nodes started from here pass it on to workers
        self.killed: Counter[str] = Counter()
        self.gave_up = 0
        """How often the driver ended by itself before the study was done."""
        health = {
            "health_check_initial_delay_ms": 1000, "health_check_period_ms": 500,
            "health_check_timeout_ms": 1000, "health_check_failure_threshold": 3,
        }  # fmt: skip
        head = {
            "num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False,
            "_system_config": health,
        }  # fmt: skip
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.add_node() for _ in range(2)]
        self.driver = self.start_driver()

    def add_node(self) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)

    def start_driver(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, __file__, "--drive", str(self.folder), self.cluster.address]
        with (self.folder / "driver.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def pids(self, position: int) -> list[int]:
        found = {int(path.name.split()[position]) for path in self.notes.iterdir()}
        return [pid for pid in found if is_alive(pid)]

    def kill(self, what: str) -> None:
        """Kill or pause something, if there is one; a node is replaced, a driver starts again."""
        if what == "driver":
            self.driver.kill()
            self.driver.wait()
            self.driver = self.start_driver()
        elif what == "node":
            os.kill(raylet_pid(self.rng.choice(self.nodes)), signal.SIGKILL)
            self.refill()
        elif what == "pause":
            self.pause(raylet_pid(self.rng.choice(self.nodes)))
        else:
            pids = self.pids(0 if what == "worker" else 1)
            if not pids:
                return
            with suppress(ProcessLookupError):
                os.kill(self.rng.choice(pids), signal.SIGKILL)
        self.killed[what] += 1

    def pause(self, raylet: int) -> None:
        """Stop the processes of a node for some time; if that is long, Ray gives the node up."""
        import psutil

        pids = []
        with suppress(psutil.Error):
            process = psutil.Process(raylet)
            pids = [process.pid, *(child.pid for child in process.children(recursive=True))]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            if number == signal.SIGSTOP:
                time.sleep(self.rng.uniform(*PAUSE_S))

    def refill(self) -> None:
        """Add nodes for those that are gone."""
        self.nodes = [node for node in self.nodes if is_alive(raylet_pid(node))]
        while len(self.nodes) < 2:
            with suppress(Exception):  # on a busy machine Ray may not start one in time
                self.nodes.append(self.add_node())

    def run(self, kills: int) -> None:
        """Kill until that was enough or the study is done; then let it finish."""
        while self.killed.total() < kills and self.wait_for_runs():
            [what] = self.rng.choices(list(KILLED), list(KILLED.values()))
            self.kill(what)
        while self.driver.poll() != 0:
            if self.driver.poll() is not None:
                self.restart_driver()
            self.refill()
            time.sleep(0.05)

    def wait_for_runs(self) -> bool:
        """Wait until some more runs are done, or a moment; returns whether the study goes on."""
        until, count = time.monotonic() + LIMIT_S, self.rng.randint(*RUNS_BETWEEN_KILLS)
        if self.rng.random() < HASTY:
            until = time.monotonic() + self.rng.uniform(0, HASTE_S)
        before = self.count_done()
        while time.monotonic() < until and self.count_done() < before + count:
            if self.driver.poll() == 0:
                return False
            if self.driver.poll() is not None:
                self.restart_driver()
            self.refill()
            time.sleep(0.05)
        return self.driver.poll() is None

    def restart_driver(self) -> None:
        """Continue the study after its driver gave up."""
        self.gave_up += 1
        if self.gave_up > MAX_GAVE_UP:
            sys.exit((self.folder / "driver.log").read_text())
        time.sleep(1)
        self.driver = self.start_driver()

    def count_done(self) -> int:
        """Return how many runs have a result; -1 without a ledger."""
        with suppress(Exception):
            return count_done(self.folder / "study")
        return -1

    def count_left(self) -> int:
        """Return how many processes of runs are there although the study is done; it may take."""
        until = time.monotonic() + END_S
        while (left := len(self.pids(0)) + len(self.pids(1))) and time.monotonic() < until:
            time.sleep(0.2)
        return left

    def close(self) -> None:
        self.driver.kill()
        self.cluster.shutdown()


def tell_kills(kills: int, seed: int) -> None:
    """Print what was lost, counted twice and left over; the same study runs serially beside it."""
    folder = Path(tempfile.mkdtemp(prefix="fairtrial-bench-"))
    killed: Counter[str] = Counter()
    lost = twice = other = left = studies = gave_up = 0
    began = time.monotonic()
    while killed.total() < kills:
        place = folder / str(studies)
        place.mkdir()
        trial = Trial(place, seed + studies)
        try:
            trial.run(kills - killed.total())
            left += trial.count_left()
        finally:
            trial.close()
        studies += 1
        gave_up += trial.gave_up
        killed += trial.killed
        results = list(open_results(place / "study"))
        lost += RUNS - sum(result.status == "success" for result in results)
        twice += len(results) - len({result.run_id for result in results})
        expected = make_study(place / "serial", "draw", RUNS)
        serial = execute_study(
            expected, RunSettings(executor="processes", parallelism=2, tables=False)
        )
        other += sum(
            (one.run_id, one.outputs) != (two.run_id, two.outputs)
            for one, two in zip(results, serial, strict=True)
        )
        text = ", ".join(f"{count} {what}s" for what, count in sorted(killed.items()))
        print(
            f"{killed.total()} kills ({text}) in {studies} studies of {RUNS:,} runs: {lost} lost, "
            f"{twice} twice, {other} unlike those of an undisturbed study, {left} processes left; "
            f"{gave_up} times the driver ended by itself; {time.monotonic() - began:.0f} s, "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["cost", "memory", "cpu", "kills"])
    parser.add_argument("--runs", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", nargs=3)
    parser.add_argument("--drive", nargs=2)
    given = parser.parse_args()
    if given.child:
        name, runs, folder = given.child
        print(json.dumps(MEASURES[name](Path(folder), int(runs))))
        return
    if given.drive:
        drive(Path(given.drive[0]), given.drive[1])
        return
    if given.only in (None, "cost"):
        tell_cost(given.runs or 10_000, given.rounds)
    if given.only in (None, "memory"):
        tell_memory(given.runs or 500_000)
    if given.only in (None, "cpu"):
        tell_cpu(given.rounds)
    if given.only in (None, "kills"):
        tell_kills(given.kills, given.seed)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()

"""What running costs beside the runs themselves, each figure against a floor of the same run.

The floor of a checkpointed run is one SQLite commit of a 1 KB row in WAL mode (synchronous=NORMAL,
so that it is CPU and not the disk that is compared). Each measurement is a child process of its
own; floors and ours take turns.

    python benchmarks/running.py [--rounds 3] [--only all-in|async] [--before SRC] [--peer PYTHON]

`--only all-in` measures what a run costs from the plan to its rows in the tables, and nothing else;
`--only async` measures 10,000 runs of an async agent that wait at once.
`--before` puts another version beside it, in turns: the folder `src` of its checkout. `--peer` puts
design-research-experiments beside it, run by a Python that has it installed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairtrial import Factor, ProblemPacket, RunBudget, Study, open_results
from fairtrial.study.runner import RunSettings, execute_study

ROUNDS = 80_000
"""Rounds of a key derivation: some 20 ms of CPU, the length of one CPU-bound run. A loop in Python
won't do: where its objects happen to lie makes one process up to a fifth slower than another."""
WAIT_S = 0.05


def noop(task: Any) -> dict[str, Any]:
    return {"text": "x" * 600, "answer": 1.0}


def spin(task: Any) -> dict[str, Any]:
    return {"answer": spin_bare()}


def spin_bare() -> int:
    return hashlib.pbkdf2_hmac("sha256", b"password", b"salt", ROUNDS)[0]


def wait(task: Any) -> dict[str, Any]:
    time.sleep(WAIT_S)
    return {"answer": 1.0}


def score(answer: Any) -> float:
    return float(answer)


def make_study(folder: Path, runs: int, parallelism: int = 1) -> Study:
    conditions = min(100, runs)
    return Study(
        "bench",
        "Benchmark",
        factors=(Factor("x", levels=tuple(range(conditions))),),
        agent_specs=("agent",),
        problem_ids=("problem",),
        run_budget=RunBudget(replicates=runs // conditions, parallelism=parallelism),
        output_dir=folder,
    )


def settings(agent: Callable[..., Any], **more: Any) -> RunSettings:
    packet = ProblemPacket("problem", "none", "nothing", {}, {}, score)
    return RunSettings(
        agent_bindings={"agent": agent}, problem_registry={"problem": packet}, tables=False, **more
    )


# -- what a child process measures --


def measure_floor(folder: Path, runs: int) -> dict[str, float]:
    connection = sqlite3.connect(folder / "floor.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)")
    body = random.Random(1).randbytes(1024)
    start = time.process_time()
    for number in range(runs):
        connection.execute("INSERT INTO rows VALUES (?, ?)", (number, body))
    return {"cpu_us": (time.process_time() - start) / runs * 1e6}


def measure_runs(folder: Path, runs: int) -> dict[str, float]:
    warm_up(folder)
    study = make_study(folder, runs)
    start = time.process_time()
    execute_study(study, settings(noop))
    ran = time.process_time()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    resumed = time.process_time()
    execute_study(study, settings(noop, resume=True))
    ended = time.process_time()
    return {
        "cpu_us": (ran - start) / runs * 1e6,
        "resume_us": (ended - resumed) / runs * 1e6,
        "peak_mb": peak_mb,
    }


def measure_all(folder: Path, runs: int) -> dict[str, float]:
    """Plan, run and tables together, as `fairtrial run` does them."""
    warm_up(folder)
    ready = settings(noop)
    ready = replace(ready, tables=True)
    execute_study(make_study(folder / "second", 2), ready)
    study = make_study(folder / "all", runs)
    start = time.process_time()
    execute_study(study, ready)
    cpu_us = (time.process_time() - start) / runs * 1e6
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu_us": cpu_us, "peak_mb": peak_mb}


def measure_python(folder: Path, runs: int) -> dict[str, float]:
    """What no run can do without: two hashes for id and seed, seeded generators, its lines."""
    import numpy as np

    head, body = b"{" * 120, random.Random(1).randbytes(1024)
    text = "x" * 600
    start = time.process_time()
    with (folder / "lines.csv").open("w") as file:
        for number in range(runs):
            identity = hashlib.sha256(head + b"%d" % number).hexdigest()
            seed = int(hashlib.sha256(body[:120] + b"%d" % number).hexdigest()[:8], 16)
            random.seed(seed)
            np.random.seed(seed)
            file.write(f"study,condition,{identity},problem,{seed},{number},success,1.5,,,\n")
            file.write(f"2026-01-01,{identity},{text},agent,output,{{}},step\n")
            file.write(f"{identity},evaluator,score,1.0,unitless,run,{{}}\n")
    return {"cpu_us": (time.process_time() - start) / runs * 1e6}


def measure_tables(folder: Path, runs: int) -> dict[str, float]:
    from fairtrial.study.tables import export_tables

    execute_study(make_study(folder, runs), settings(noop))
    results = open_results(folder)
    start = time.process_time()
    export_tables(results, folder)
    return {"cpu_us": (time.process_time() - start) / runs * 1e6}


def measure_pair(folder: Path, runs: int) -> dict[str, float]:
    """Two workers against two bare processes that split the same work."""
    warm_up(folder)
    start = time.perf_counter()
    halves = [
        multiprocessing.get_context("fork").Process(target=_spin_many, args=(runs // 2,))
        for _ in range(2)
    ]
    for half in halves:
        half.start()
    for half in halves:
        half.join()
    bare_s = time.perf_counter() - start
    study = make_study(folder, runs, parallelism=2)
    start = time.perf_counter()
    execute_study(study, settings(spin))
    return {"bare_s": bare_s, "ours_s": time.perf_counter() - start}


def warm_up(folder: Path) -> None:
    """A study of two runs: what is imported once is not what is measured here."""
    execute_study(make_study(folder / "first", 2), settings(noop))


def _spin_many(times: int) -> None:
    for _ in range(times):
        spin_bare()


def measure_threads(folder: Path, runs: int) -> dict[str, float]:
    warm_up(folder)
    study = make_study(folder, runs, parallelism=64)
    start = time.perf_counter()
    execute_study(study, settings(wait, executor="threads"))
    threads_s = time.perf_counter() - start
    tenth = make_study(folder / "serial", runs // 10)
    start = time.perf_counter()
    execute_study(tenth, settings(wait))
    return {"threads_s": threads_s, "serial_s": (time.perf_counter() - start) * 10}


_begun = [0, 0]
"""How many async runs are waiting, and the most that did at once."""
ASYNC_WAIT_S = 20.0


async def wait_async(task: Any) -> dict[str, Any]:
    """Wait so long that all runs of the study wait before the first one ends."""
    _begun[0] += 1
    _begun[1] = max(_begun)
    await asyncio.sleep(ASYNC_WAIT_S)
    _begun[0] -= 1
    return {"x": 1}


def measure_async(folder: Path, runs: int) -> dict[str, float]:
    """All runs wait at once in one process; a study of two imports what is imported once."""
    execute_study(make_study(folder / "first", 2), settings(noop, executor="async"))
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu_s, start = time.process_time(), time.perf_counter()
    study = make_study(folder / "many", runs, parallelism=runs)
    execute_study(study, settings(wait_async, executor="async"))
    took_s = time.perf_counter() - start
    return {
        "most_at_once": _begun[1],
        "kb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / runs,
        "cpu_us": (time.process_time() - cpu_s) / runs * 1e6,
        "beyond_us": (took_s - ASYNC_WAIT_S) / runs * 1e6,
    }


def in_child(name: str, runs: int, source: str | None = None) -> dict[str, float]:
    """Measure in a process of its own; `source` is the folder `src` of another version."""
    folder = Path(tempfile.mkdtemp(prefix="fairtrial-bench-"))
    try:
        command = [sys.executable, __file__, "--child", name, str(runs), str(folder)]
        environment = os.environ | ({} if source is None else {"PYTHONPATH": source})
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            sys.exit(done.stderr)
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found
    finally:
        shutil.rmtree(folder)


CHILDREN: dict[str, Callable[[Path, int], dict[str, float]]] = {
    "floor": measure_floor,
    "runs": measure_runs,
    "all": measure_all,
    "python": measure_python,
    "tables": measure_tables,
    "pair": measure_pair,
    "threads": measure_threads,
    "async": measure_async,
}


# -- what the parent makes of it --


def middle(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def tell_all_in(rounds: int, source: str | None, runs: int = 50_000) -> None:
    """Print what runs cost from plan to tables against the floor, in turns with another version."""
    versions = {"all in": None} | ({} if source is None else {"all in, before": source})
    floors, bare = [], []
    found: dict[str, list[dict[str, float]]] = {name: [] for name in versions}
    for _ in range(rounds):
        floors.append(in_child("floor", runs)["cpu_us"])
        bare.append(in_child("python", runs)["cpu_us"])
        for name, version in versions.items():
            found[name].append(in_child("all", runs, version))
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"floor: a WAL commit of a 1 KB row       {middle(floors)} µs CPU  (load {load})")
    print(f"two hashes, two seeds, three lines      {middle(bare)} µs CPU")
    for name, results in found.items():
        ratios = [one["cpu_us"] / floor for one, floor in zip(results, floors, strict=True)]
        ours_us = statistics.median(one["cpu_us"] for one in results)
        print(
            f"{f'{runs:,} runs, {name} / floor':<40}{middle(ratios)}"
            f"  (goal: at most 3; {ours_us:.1f} µs a run, {results[0]['peak_mb']:.0f} MB)",
            flush=True,
        )
    peak_mb = in_child("all", 500_000)["peak_mb"]
    print(f"peak memory, 500,000 runs, all in       {peak_mb:.0f} MB  (goal: at most 70)")


def tell_async(rounds: int, runs: int = 10_000) -> None:
    """Print what waiting runs of async agents cost, all of them at once in one process."""
    found = [in_child("async", runs) for _ in range(rounds)]
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    most = min(one["most_at_once"] for one in found)
    print(f"async: {most:,.0f} of {runs:,} runs waited at once in one process  (load {load})")
    parts = [
        ("memory", "kb", "KB"),
        ("CPU", "cpu_us", "µs"),
        ("the rest", "beyond_us", "µs"),
    ]
    for what, key, unit in parts:
        print(f"{f'  {what} per run':<40}{middle([one[key] for one in found])} {unit}")


def tell_peer(python: str, runs: int = 50_000) -> None:
    """The same study in the peer, its tables included: it has no other way."""
    folder = Path(tempfile.mkdtemp(prefix="fairtrial-bench-"))
    command = [python, str(Path(__file__).parent / "peer.py"), str(runs), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shutil.rmtree(folder)
    found = json.loads(done.stdout)
    print(
        f"design-research-experiments, {runs:,} runs {found['cpu_us']:.0f} µs a run, resumed "
        f"{found['resume_us']:.0f} µs, {found['peak_mb']:.0f} MB, {found['files']:,} files"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=3)
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--before", metavar="SRC")
    parser.add_argument("--only", choices=["all-in", "async"])
    given = parser.parse_args()
    if given.child:
        name, runs, folder = given.child
        print(json.dumps(CHILDREN[name](Path(folder), int(runs))))
        return
    if given.only != "async":
        tell_all_in(given.rounds, given.before)
    if given.only != "all-in":
        tell_async(given.rounds)
    if given.only:
        return
    rounds = [(in_child("floor", 50_000), in_child("runs", 50_000)) for _ in range(given.rounds)]
    floor_us = [floor["cpu_us"] for floor, _ in rounds]
    print(f"floor: a WAL commit of a 1 KB row       {statistics.median(floor_us):.1f} µs CPU")
    for what, key, goal in (
        ("50,000 checkpointed no-op runs / floor", "cpu_us", 3),
        ("resuming them when finished / floor", "resume_us", 1),
    ):
        ratios = [ours[key] / floor["cpu_us"] for floor, ours in rounds]
        ours_us = statistics.median(ours[key] for _, ours in rounds)
        print(f"{what:<40}{middle(ratios)}  (goal: at most {goal}; {ours_us:.1f} µs a run)")
    if given.peer:
        tell_peer(given.peer)
    tables = in_child("tables", 50_000)["cpu_us"]
    print(f"tables of 50,000 runs                   {tables:.1f} µs CPU a run")
    small, large = in_child("runs", 10_000)["peak_mb"], in_child("runs", 500_000)["peak_mb"]
    print(
        f"peak memory, 10,000 and 500,000 runs    {small:.0f} and {large:.0f} MB  "
        "(goal: within 20 MB, below 150)"
    )
    pairs = [in_child("pair", 600) for _ in range(given.rounds)]
    shares = [pair["bare_s"] / pair["ours_s"] for pair in pairs]
    print(
        f"2 CPU-bound workers / two bare processes {middle(shares)}"
        f"  (goal: at least 0.9; {os.cpu_count()} cores)"
    )
    waits = [in_child("threads", 640) for _ in range(given.rounds)]
    print(
        f"640 waits of 50 ms on 64 threads         "
        f"{middle([w['serial_s'] / w['threads_s'] for w in waits])}× serial  (goal: at least 50)"
    )


if __name__ == "__main__":
    main()

"""Planning 100,000 runs against its floor, and the memory of planning a million.

The floor is what no planner of these ids can avoid if it makes them one by one: two `json.dumps`
and two SHA-256 for each run, in a plain loop. Both are timed in turns in one process (CPU time,
median of the rounds), so that a slow machine slows both.

Then the commands `check` and `plan` on 100,000 conditions, and 1,000 constraints on 10,000: CPU
time of the whole process, started in turns with another version if `--before` names its `src`.

    python benchmarks/plan.py [--rounds 7] [--only commands] [--before SRC]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fairtrial import Factor, RunBudget, SeedPolicy, Study, build_design, plan_runs
from fairtrial.study.design import count_runs


def make_study(conditions: int, replicates: int) -> Study:
    return Study(
        "bench",
        "Benchmark",
        factors=(
            Factor("x", levels=tuple(range(conditions // 10))),
            Factor("y", levels=(*"abcdefghij",)),
        ),
        agent_specs=("agent",),
        problem_ids=("problem",),
        run_budget=RunBudget(replicates=replicates),
        seed_policy=SeedPolicy(base_seed=7),
    )


def floor(condition_ids: list[str], replicates: int) -> int:
    """Two canonical texts and two hashes for each run; nothing else."""
    count = 0
    for condition_id in condition_ids:
        for replicate in range(1, replicates + 1):
            run = {
                "agent_id": "agent",
                "condition_id": condition_id,
                "problem_id": "problem",
                "replicate": replicate,
                "study_id": "bench",
            }
            seed = {
                "base_seed": 7,
                "strategy": "condition_replicate",
                "per_run_offset": 9973,
                "study_id": "bench",
                "condition_id": condition_id,
                "replicate": replicate,
                "salt": "agent:problem",
            }
            for payload in (run, seed):
                text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
                hashlib.sha256(text.encode()).hexdigest()
            count += 1
    return count


def cpu_s(work: object) -> float:
    start = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - start


def compare(rounds: int) -> None:
    study = make_study(1_000, 100)
    conditions = build_design(study)
    ids = [condition.condition_id for condition in conditions]
    planned, bare, designed = [], [], []
    for _ in range(rounds):
        bare.append(cpu_s(lambda: floor(ids, 100)))
        planned.append(cpu_s(lambda: sum(1 for _ in plan_runs(study, conditions))))
        designed.append(cpu_s(lambda: build_design(study)))
    ratios = [one / two for one, two in zip(planned, bare, strict=True)]
    print(f"floor, 100,000 runs           {statistics.median(bare):.3f} s CPU")
    print(f"plan_runs, 100,000 runs       {statistics.median(planned):.3f} s CPU")
    print(f"build_design, 1,000 conditions {statistics.median(designed):.3f} s CPU")
    print(
        f"plan_runs / floor             {statistics.median(ratios):.2f}"
        f"  ({min(ratios):.2f} to {max(ratios):.2f}, {rounds} rounds; goal: at most 2.5)"
    )


def report_peak(conditions: int, replicates: int) -> None:
    """Plan in this process and print the peak resident memory; meant for a child process."""
    study = make_study(conditions, replicates)
    made = build_design(study)
    assert sum(1 for _ in plan_runs(study, made)) == count_runs(study, made)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def peak_mb(conditions: int, replicates: int) -> int:
    command = [sys.executable, __file__, "--peak", str(conditions), str(replicates)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def write_file(path: Path, levels: list[list[object]], constraints: int) -> None:
    """Write a study with factors of these levels, and with constraints on the first two."""
    study = {
        "study_id": "bench",
        "title": "Benchmark",
        "factors": [
            {"name": f"f{number}", "levels": values} for number, values in enumerate(levels)
        ],
        "agent_specs": ["agent"],
        "problem_ids": ["problem"],
        "constraints": [
            {
                "constraint_id": f"c{number}",
                "description": "",
                "expression": f"f0 != {number} or f1 == 'a' or f0 + {number} > 5",
            }
            for number in range(constraints)
        ],
    }
    path.write_text(json.dumps(study))


def command_s(arguments: list[str], source: str | None) -> float:
    """Return the CPU time of a command of fairtrial, from start to exit."""
    environment = os.environ | ({} if source is None else {"PYTHONPATH": source})
    code = "import sys; from fairtrial.cli.main import main; sys.exit(main())"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tell_commands(rounds: int, source: str | None) -> None:
    """Print the CPU time of `check` and `plan`, in turns with another version."""
    letters = list("abcdefghij")
    digits: list[object] = list(range(10))
    cases = {
        "100,000 conditions": ([digits, letters, digits, letters, digits], 0, 1),
        "10,000 conditions, 1,000 constraints": ([list(range(1_000)), letters], 1_000, 5),
    }
    versions = {"now": None} | ({} if source is None else {"before": source})
    with tempfile.TemporaryDirectory() as folder:
        for name, (levels, constraints, goal_s) in cases.items():
            path = Path(folder) / f"{constraints}.json"
            write_file(path, levels, constraints)
            for command in ("check", "plan"):
                found: dict[str, list[float]] = {version: [] for version in versions}
                for _ in range(rounds):
                    for version, place in versions.items():
                        found[version].append(command_s([command, str(path)], place))
                for version, times in found.items():
                    print(
                        f"{command}, {name}, {version}: {statistics.median(times):.2f} s CPU "
                        f"({min(times):.2f} to {max(times):.2f}; goal: at most {goal_s})",
                        flush=True,
                    )
    print("load", *(f"{value:.1f}" for value in os.getloadavg()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peak", nargs=2, type=int)
    parser.add_argument("--only", choices=["commands"])
    parser.add_argument("--before", metavar="SRC")
    arguments = parser.parse_args()
    if arguments.peak:
        report_peak(*arguments.peak)
        return
    tell_commands(min(arguments.rounds, 3), arguments.before)
    if arguments.only:
        return
    compare(arguments.rounds)
    print(f"peak memory, 10 runs           {peak_mb(10, 1)} MB")
    print(f"peak memory, 100,000 runs      {peak_mb(1_000, 100)} MB")
    print(f"peak memory, 1,000,000 runs    {peak_mb(1_000, 1_000)} MB  (goal: under 100)")


if __name__ == "__main__":
    main()

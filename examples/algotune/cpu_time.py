"""Compare the CPU time of an answer with that of the reference solution, in one process.

    python cpu_time.py OUT/NAME MODEL [--size N] [--form stored] [--problems 3]

A quick look at sizes that are too large to be judged, or on a busy machine: no verdict, no
interval, and the answer runs in this process, so run it inside a sandbox. Prints a JSON line with
the ratio for each problem, whether the task's verifier accepts all results, and whether the answer
changed its argument.
"""

from __future__ import annotations

import argparse
import json
import logging
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def measure(solve: Callable[[Any], Any], problem: Any) -> tuple[float, Any]:
    """Return the CPU time of a call in seconds, and its result."""
    began = time.process_time()
    result = solve(problem)
    return max(time.process_time() - began, 1e-9), result


def is_accepted(task: Any, problem: Any, result: Any) -> bool:
    """Return whether the task's verifier accepts a result; an error counts as no."""
    try:
        return bool(task.is_solution(problem, result))
    except Exception:
        return False


def compare(folder: Path, model: str, options: argparse.Namespace) -> dict[str, Any]:
    """Time the answer of a model and the reference solution on the same problems, in turns."""
    sys.path[:0] = [str(folder / part) for part in (f"candidates/{model}", "repo", "repo/judging")]
    task, inputs = __import__("reference").TASK, __import__("problem_inputs")
    solve = __import__("solver").Solver().solve
    entry = json.loads((folder / "task.json").read_text("utf-8"))
    size = options.size or entry["published_size"]

    def make(seed: int) -> Any:
        problem = task.generate_problem(size, seed)
        return inputs.as_stored(problem, entry["stored_arrays"] * (options.form == "stored"))

    measure(task.solve, make(0))
    measure(solve, make(0))
    ratios, accepted, changed, base_s = [], True, False, []
    for seed in range(1, options.problems + 1):
        problem = make(seed)
        before = pickle.dumps(problem)
        base_s.append(measure(task.solve, make(seed))[0])
        taken_s, result = measure(solve, problem)
        ratios.append(round(base_s[-1] / taken_s, 3))
        changed = changed or pickle.dumps(problem) != before
        accepted = accepted and is_accepted(task, make(seed), result)
    facts = {"ratios": sorted(ratios), "accepted": accepted, "changed_argument": changed}
    return {
        "task": entry["task"],
        "model": model,
        "form": options.form,
        "size": size,
        "base_ms": round(min(base_s) * 1000, 1),
        **facts,
    }


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, and print the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="a task's folder that convert.py wrote")
    parser.add_argument("model", help="the name of a folder in its candidates")
    parser.add_argument("--size", type=int, help="default: the published one")
    parser.add_argument("--form", choices=("stored", "made"), default="stored")
    parser.add_argument("--problems", type=int, default=3, help="how many (default: 3)")
    options = parser.parse_args(arguments)
    sys.dont_write_bytecode = True
    logging.disable(logging.CRITICAL)
    print(json.dumps(compare(options.folder, options.model, options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Judge converted AlgoTune answers, and print the results as a Markdown table.

    python retrial.py run OUT [--seed 1] [--minutes 60]
    python retrial.py table OUT

`run` calls `fairtrial evaluate` for each problem that `convert.py` wrote to OUT, in random order,
until the time is over, and adds a line per problem to OUT/results.jsonl. Problems that have one
already are skipped, so it can be called again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = "results.jsonl"
FILES = {"stored": "problem.yaml", "made": "made.yaml"}
HOLDS_WITHIN = 1.5  # a published speed-up holds if ours is at most this factor away, and half of it
EXIT_INTERRUPTED = 130
MISSING_MODULE = "ModuleNotFoundError"


def list_problems(out: Path, seed: int) -> list[tuple[str, str]]:
    """Return the tasks of a folder with their forms of inputs; tasks in random order."""
    entries = [json.loads(path.read_text("utf-8")) for path in sorted(out.glob("*/task.json"))]
    random.Random(seed).shuffle(entries)
    return [(entry["task"], form) for entry in entries for form in entry["forms"]]


def read_results(out: Path) -> list[dict[str, Any]]:
    """Return the lines of the results file."""
    path = out / RESULTS
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def judge(folder: Path, form: str, options: argparse.Namespace) -> dict[str, Any]:
    """Judge all candidates of a problem; return the evaluation's JSON, or an error."""
    candidates = sorted(str(path) for path in (folder / "candidates").iterdir())
    command = [sys.executable, "-m", "fairtrial", "evaluate", "--json"]
    command += ["--no-audit"] * options.no_audit
    try:
        done = subprocess.run(
            [*command, str(folder / FILES[form]), *candidates],
            capture_output=True,
            text=True,
            timeout=options.timeout_s,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done within {options.timeout_s:g} s"}
    if done.returncode == EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"error": done.stderr.strip()[-500:] or f"exit code {done.returncode}"}
    return document


def run(out: Path, options: argparse.Namespace) -> int:
    """Judge problems until the time is over."""
    ends = time.monotonic() + options.minutes * 60
    done = {(entry["task"], entry["form"]) for entry in read_results(out)}
    for name, form in list_problems(out, options.seed):
        if (name, form) in done or (options.task and name not in options.task):
            continue
        if time.monotonic() > ends:
            break
        began = time.monotonic()
        evaluation = judge(out / name, form, options)
        entry: dict[str, Any] = {"task": name, "form": form, "evaluation": evaluation}
        entry["seconds"] = round(time.monotonic() - began, 1)
        entry["load"] = round(os.getloadavg()[0], 1)
        with (out / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        verdicts = [candidate["verdict"] for candidate in evaluation.get("candidates", [])]
        print(f"{name} ({form}): {', '.join(verdicts) or evaluation.get('error')}", flush=True)
    return 0


def describe(published: float, candidate: dict[str, Any]) -> str:
    """Return what became of a published speed-up, in a word or two."""
    if candidate["verdict"] == "rejected":
        # a module that is imported in a way that convert.py doesn't see
        return "not tried" if MISSING_MODULE in json.dumps(candidate) else "refused"
    if candidate["ratio"] is None:
        return "not timed"
    low, high = candidate["interval"]
    is_near = low / HOLDS_WITHIN <= published <= high * HOLDS_WITHIN
    if is_near and (published <= 1 or high >= math.sqrt(published)):
        return "holds"
    return "less" if candidate["ratio"] < published else "more"


def shorten_reason(candidate: dict[str, Any]) -> str:
    """Return why a candidate was rejected or not adopted; empty if it is adopted."""
    if candidate["verdict"] == "rejected":
        for failure in candidate["failures"][:1]:
            for difference in failure.get("differences", [])[:1]:
                _, _, refusal = difference["expected"].partition("a result that is accepted ")
                text = refusal.strip("()") or f"{difference['where']}: {difference['actual']}"
                return " ".join(text.split())[:160]
        return " ".join(str(candidate["reason"]).split())[:160]
    kinds = {"start-up": "start-up", "clock": "work outside the clock", "accept": "null accepted"}
    found = [kinds[key] for key in kinds if any(key in veto for veto in candidate["vetoes"])]
    return "; ".join(found)


def list_rows(out: Path) -> Iterator[list[str]]:
    """Yield the rows of the table, tasks and their answers in order."""
    for result in sorted(read_results(out), key=lambda entry: (entry["task"], entry["form"])):
        task = json.loads((out / result["task"] / "task.json").read_text("utf-8"))
        answers = {answer["folder"]: answer for answer in task["answers"]}
        evaluation = result["evaluation"]
        start = [result["task"], f"{task['size']}/{task['published_size']}", result["form"]]
        if not evaluation.get("candidates"):
            yield [*start, "", "", "", "", "not judged", str(evaluation.get("error"))[:200]]
        for candidate in evaluation.get("candidates", []):
            answer = answers[candidate["name"]]
            ratio = ""
            if candidate["ratio"] is not None:
                low, high = candidate["interval"]
                ratio = f"{candidate['ratio']:.3g} [{low:.3g}, {high:.3g}]"
            outcome = describe(answer["published"], candidate)
            by_cpu = "".join(f"{timing['cpu_ratio']:.3g}" for timing in candidate["timings"])
            speeds = [f"{answer['published']:.3g}", ratio, by_cpu]
            yield [*start, answer["model"], *speeds, outcome, shorten_reason(candidate)]


def print_table(out: Path) -> int:
    """Print the results, and the tasks whose checks accept a function that does no work."""
    print("| task | size | inputs | model | published | ours | by CPU time | outcome | reason |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in list_rows(out):
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    print()
    for result in read_results(out):
        adequacy = result["evaluation"].get("adequacy") or {}
        for null in adequacy.get("nulls", []):
            if null["passed"]:
                print(f"- {result['task']} ({result['form']}): {null['what']}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, and run or print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("out", type=Path, help="the folder that convert.py wrote")
    parser.add_argument("--task", action="append", help="a task to run; default: all")
    parser.add_argument("--seed", type=int, default=1, help="of the order of tasks (default: 1)")
    parser.add_argument("--minutes", type=float, default=60, help="when to begin no more (60)")
    parser.add_argument("--timeout-s", type=float, default=900, help="limit of a problem (900)")
    parser.add_argument("--no-audit", action="store_true", help="don't put the checks on trial")
    options = parser.parse_args(arguments)
    return run(options.out, options) if options.action == "run" else print_table(options.out)


if __name__ == "__main__":
    sys.exit(main())

"""Convert tasks of an AlgoTune checkout, and the answers stored in it, to code problems.

    python convert.py CHECKOUT OUT [--task NAME]... [--best 3]

Nothing of AlgoTune is part of this project: tasks and answers are read from the user's checkout and
written to OUT, one folder per task:

    OUT/NAME/problem.yaml    inputs in the form in which AlgoTune stores and loads them
    OUT/NAME/made.yaml       inputs as the task makes them; only if this is another form
    OUT/NAME/repo/           the base: a git repository with the task's reference solution
    OUT/NAME/candidates/     the answers, one folder per model
    OUT/NAME/task.json       sizes, published speed-ups, and which answers can't be tried and why

Run it with the Python that is to run the problems: it imports the tasks and times their reference
solutions, without a sandbox. The code of the answers is only copied.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TEMPLATES = Path(__file__).resolve().parent / "template"
MODEL_ALIASES = {"r1": "deepseek-reasoner"}  # answers' folder -> name in the summary
NEEDS_BUILD = {".c": "a C compiler", ".cpp": "a C++ compiler", ".pyx": "Cython"}
SIZE_SEEDS = (1, 2, 3)

PROBLEM = """\
problem_id: algotune-{name}
family: code
brief: Make `solve` of AlgoTune's task {name} faster.
repo: repo
editable: ["solver.py", "*.py", ":!calls.py"]
python: {python}
import_roots: ["."]
check:
  - function: "calls:solve"
    inputs: "judging/problem_inputs.py:{form}"
    cases: {cases}
    accept: "judging/verify.py:accept"
    timeout_s: 300
bench:
  - name: {form}
    call: "calls:solve"
    inputs: "judging/problem_inputs.py:{form}"
budget_s: {budget_s}
limits: {{memory_mb: 4096}}
"""


class NotConvertibleError(Exception):
    """A task can't be converted; the message says why."""


def find_imports(path: Path) -> set[str]:
    """Return the top-level modules that a Python file imports, anywhere in it.

    Optional imports count as well: without them an answer runs, but isn't the one published.
    Raises `SyntaxError` if the file is not Python.
    """
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.add(node.module.partition(".")[0])
    return modules


def find_missing(folder: Path) -> list[str]:
    """Return what the Python files of a folder need and this Python lacks, sorted."""
    own = {path.stem for path in folder.iterdir()} | {"AlgoTuneTasks", "__main__"}
    needs = {NEEDS_BUILD[path.suffix] for path in folder.iterdir() if path.suffix in NEEDS_BUILD}
    for path in folder.glob("*.py"):
        try:
            modules = find_imports(path) - own - sys.stdlib_module_names
        except SyntaxError:
            needs.add("valid Python")
            continue
        needs.update(name for name in modules if importlib.util.find_spec(name) is None)
    return sorted(needs)


def normalize_model(name: str) -> str:
    """Return a model's name in small letters, without its date and punctuation."""
    without_date = re.sub(r"-\d{8}$", "", name.lower())
    return re.sub(r"[^a-z0-9]+", "-", MODEL_ALIASES.get(without_date, without_date)).strip("-")


def read_published(checkout: Path, name: str) -> dict[str, float | None]:
    """Return the published speed-ups of a task by normalized model name; None for "N/A"."""
    path = checkout / "reports" / "agent_summary.json"
    entries = json.loads(path.read_text("utf-8")).get(name, {}) if path.exists() else {}
    published: dict[str, float | None] = {}
    for model, entry in entries.items():
        published[normalize_model(model)] = None
        with contextlib.suppress(ValueError, TypeError):
            published[normalize_model(model)] = float(entry["final_speedup"])
    return published


def read_size(checkout: Path, name: str) -> int:
    """Return the size (`n`) with which a task was published.

    Raises `NotConvertibleError` if there is none.
    """
    path = checkout / "reports" / "generation.json"
    sizes = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if "n" not in sizes.get(name, {}):
        raise NotConvertibleError("no published size")
    return int(sizes[name]["n"])


def copy_task(checkout: Path, name: str, repo: Path) -> None:
    """Write the base: the task's own files and the files of `template`.

    Raises `NotConvertibleError` if the task needs modules that this Python lacks.
    """
    source = checkout / "AlgoTuneTasks" / name
    if missing := find_missing(source):
        raise NotConvertibleError("needs " + ", ".join(missing))
    shutil.copytree(TEMPLATES, repo, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        source, repo / "tasks" / name, ignore=shutil.ignore_patterns("__pycache__", "*.txt")
    )
    (repo / "task_name.py").write_text(f'NAME = "{name}"\n', "utf-8")


def load_repo(repo: Path) -> tuple[Any, Any]:
    """Import the task of a base and its input maker; return both."""
    own = {path.stem for path in TEMPLATES.rglob("*.py")} | {"AlgoTuneTasks", "tasks"}
    for module in [module for module in sys.modules if module.partition(".")[0] in own]:
        del sys.modules[module]
    importlib.invalidate_caches()
    sys.path[:0] = [str(repo), str(repo / "judging")]
    try:
        return __import__("reference").TASK, __import__("problem_inputs")
    finally:
        del sys.path[:2]


def find_unplain(value: Any) -> str:
    """Return the name of a type in a value that arguments can't have; empty if all is plain."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple)):
        return next((name for part in value if (name := find_unplain(part))), "")
    kind = type(value)
    is_plain = kind.__module__ in ("builtins", "numpy")
    return "" if is_plain else f"{kind.__module__}.{kind.__name__}"


def measure(task: Any, inputs: Any, size: int, paths: list[str]) -> tuple[float, float]:
    """Return the median time of the reference solution in ms, and the largest value in MB.

    Inputs have the stored form.
    """
    times, largest = [], 0
    for seed in SIZE_SEEDS:
        problem = inputs.as_stored(task.generate_problem(size, seed), paths)
        largest = max(largest, len(pickle.dumps(problem)))
        began = time.process_time()
        result = task.solve(problem)
        times.append(time.process_time() - began)
        largest = max(largest, len(pickle.dumps(result)))
    return sorted(times)[len(times) // 2] * 1000, largest / 1e6


def choose_size(task: Any, inputs: Any, published: int, options: Any) -> dict[str, Any]:
    """Return the size to use: the published one, or the first smaller one within the limits.

    Sizes shrink by a factor of 0.7. Which lists AlgoTune would store as arrays is found out at the
    published size, and stays so for smaller ones.
    Raises `NotConvertibleError` if the smallest size is too large, or problems are no plain data.
    """
    problem = task.generate_problem(published, 1)
    if name := find_unplain(problem):
        raise NotConvertibleError(f"problems hold values of type {name}")
    paths = inputs.find_stored_arrays(problem)
    size = published
    while True:
        milliseconds, megabytes = measure(task, inputs, size, paths)
        if milliseconds <= options.largest_ms and megabytes <= options.largest_mb:
            return {"size": size, "base_ms": round(milliseconds, 2), "stored_arrays": paths}
        if size < 2:
            raise NotConvertibleError(f"a call takes {milliseconds:.0f} ms and {megabytes:.1f} MB")
        size = int(size * 0.7)


def copy_answers(
    checkout: Path, name: str, target: Path, best: int, at_least: float
) -> list[dict[str, Any]]:
    """Copy the answers with the best published speed-ups that can be tried.

    Returns an entry for each stored answer: model, folder, published speed-up, and why it is not
    tried (empty if it is).
    """
    published = read_published(checkout, name)
    entries = []
    for folder in sorted((checkout / "results").glob(f"*/{name}")):
        if not (folder / "solver.py").exists():
            continue
        model = folder.parent.name
        claim = published.get(normalize_model(model))
        missing = find_missing(folder)
        reason = f"needs {', '.join(missing)}" if missing else ""
        if "class Solver" not in (folder / "solver.py").read_text("utf-8"):
            reason = reason or "has no class Solver"
        elif claim is None:
            reason = reason or "no published speed-up"
        elif claim < at_least:
            reason = reason or f"published speed-up below {at_least:g}"
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-")
        entry: dict[str, Any] = {"model": model, "folder": slug, "published": claim}
        entries.append(({**entry, "not_tried": reason}, folder))
    tried = [item for item in entries if not item[0]["not_tried"]]
    tried.sort(key=lambda item: -item[0]["published"])
    for entry, folder in tried[:best]:
        (target / entry["folder"]).mkdir(parents=True)
        for path in folder.glob("*.py"):
            shutil.copy(path, target / entry["folder"] / path.name)
    for entry, _ in tried[best:]:
        entry["not_tried"] = f"not among the best {best} that can be tried"
    return [entry for entry, _ in entries]


def commit(repo: Path) -> None:
    """Make a folder a git repository with one commit."""
    identity = ["-c", "user.name=convert", "-c", "user.email=convert@localhost"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "base"]):
        subprocess.run(["git", *command], cwd=repo, check=True)


def convert(checkout: Path, name: str, out: Path, options: Any) -> dict[str, Any]:
    """Convert one task; return what `task.json` holds.

    Raises `NotConvertibleError` if that is impossible; nothing is left behind then.
    """
    folder = out / name
    if folder.exists():
        raise NotConvertibleError(f"{folder} exists already")
    try:
        published = read_size(checkout, name)
        copy_task(checkout, name, folder / "repo")
        answers = copy_answers(
            checkout, name, folder / "candidates", options.best, options.at_least
        )
        if not (folder / "candidates").exists():
            raise NotConvertibleError("no stored answer is to be tried")
        task, inputs = load_repo(folder / "repo")
        entry = choose_size(task, inputs, published, options)
        forms = ["stored", "made"] if entry["stored_arrays"] else ["stored"]
    except NotConvertibleError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except Exception as error:  # code of the checkout may raise anything
        shutil.rmtree(folder, ignore_errors=True)
        raise NotConvertibleError(f"the task raised {type(error).__name__}: {error}") from error
    shutil.rmtree(folder / "repo" / "__pycache__", ignore_errors=True)
    sizes = {"size": entry["size"], "stored_arrays": entry["stored_arrays"]}
    (folder / "repo" / "judging" / "size.json").write_text(json.dumps(sizes), "utf-8")
    (folder / "repo" / ".gitignore").write_text("__pycache__/\n", "utf-8")
    commit(folder / "repo")
    for form in forms:
        text = PROBLEM.format(
            name=name,
            form=form,
            python=json.dumps(sys.executable),
            cases=options.cases,
            budget_s=options.budget_s,
        )
        path = folder / ("problem.yaml" if form == "stored" else "made.yaml")
        path.write_text(text, "utf-8")
    summary = {"task": name, "published_size": published, **entry, "forms": forms}
    summary["answers"] = answers
    (folder / "task.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    return summary


def list_tasks(checkout: Path) -> list[str]:
    """Return the names of all tasks of a checkout."""
    folders = sorted((checkout / "AlgoTuneTasks").iterdir())
    return [path.name for path in folders if (path / f"{path.name}.py").exists()]


def read_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("checkout", type=Path, help="an AlgoTune checkout")
    parser.add_argument("out", type=Path, help="where problems are written")
    parser.add_argument("--task", action="append", help="a task; default: all")
    parser.add_argument("--best", type=int, default=3, help="answers per task (default: 3)")
    parser.add_argument("--at-least", type=float, default=0.0, help="smallest published speed-up")
    parser.add_argument("--cases", type=int, default=8, help="inputs of the check (default: 8)")
    parser.add_argument("--budget-s", type=float, default=20.0, help="as in problem files")
    parser.add_argument("--largest-ms", type=float, default=200.0, help="limit of a base call")
    parser.add_argument("--largest-mb", type=float, default=3.0, help="limit of input and result")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Convert tasks, print a line for each, and return the exit code."""
    options = read_arguments(arguments)
    if not (options.checkout / "AlgoTuneTasks").is_dir():
        print(f"{options.checkout} has no folder AlgoTuneTasks: give a checkout of AlgoTune")
        return 2
    sys.dont_write_bytecode = True
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in fairtrial's checks
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    names = options.task or list_tasks(options.checkout)
    if unknown := sorted(set(names) - set(list_tasks(options.checkout))):
        print(f"no such task: {', '.join(unknown)}")
        return 2
    for name in names:
        try:
            entry = convert(options.checkout, name, options.out, options)
        except NotConvertibleError as error:
            print(f"{name}: not converted: {error}")
            continue
        tried = [answer["model"] for answer in entry["answers"] if not answer["not_tried"]]
        print(f"{name}: size {entry['size']} of {entry['published_size']}; {', '.join(tried)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

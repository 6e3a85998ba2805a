"""Optimize functions of real packages with the offline proposer: verified and timed.

    python benchmarks/real_packages.py [--only NAME] [--output FOLDER]

Sources come from the package registry by name and version, and stay out of this repository; four
more are textbook functions of ``demo_functions``. The table has a row for each, also where nothing
was found. One optimization takes up to some minutes.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCAL = "demo_functions"
"""The package of functions in the folder of that name."""
PROBLEM = """\
problem_id: {name}
brief: Make {call} faster.
editable: ["{editable}"]
import_roots: [.]
check:
  - {{function: "{call}", inputs: "fairtrial_inputs.py:make", cases: 40}}
bench:
  - {{name: "{name}", call: "{call}", inputs: "fairtrial_inputs.py:make"}}
budget_s: 15
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """A function to optimize.

    package: the name and version of its package, or `LOCAL`
    call: the function
    editable: the files that candidates may change
    inputs: the body of a function of `rng` that returns (args, kwargs)
    needs: other packages that it imports; they are not editable
    """

    package: str
    call: str
    editable: str
    inputs: str
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The function, without its package's version."""
        return self.call.replace(":", ".")


SUBJECTS = (
    Subject(
        "toposort==1.10",
        "toposort:toposort_flatten",
        "toposort.py",
        "graph = {n: {rng.randrange(n) for _ in range(3)} for n in range(1, 300)}\n"
        "    return (graph,), {}",
    ),
    Subject(
        "inflection==0.5.1",
        "inflection:pluralize",
        "inflection/*.py",
        "return (''.join(rng.choices('abcdefghsxy', k=rng.randrange(3, 12))),), {}",
    ),
    Subject(
        "tabulate==0.9.0",
        "tabulate:tabulate",
        "tabulate/*.py",
        "rows = [[rng.randrange(10**6), rng.random(), str(rng.random())] for _ in range(60)]\n"
        "    return (rows,), {'headers': ['a', 'b', 'c']}",
    ),
    Subject(
        "textdistance==4.6.3",
        "textdistance:levenshtein.distance",
        "textdistance/**/*.py",
        "a, b = (''.join(rng.choices('abcd', k=40)) for _ in range(2))\n    return (a, b), {}",
    ),
    Subject(
        "more-itertools==10.5.0",
        "more_itertools:unique_to_each",
        "more_itertools/*.py",
        "return tuple([rng.randrange(200) for _ in range(150)] for _ in range(5)), {}",
    ),
    Subject(
        "num2words==0.5.13",
        "num2words:num2words",
        "num2words/*.py",
        "return (rng.randrange(10**9),), {}",
    ),
    Subject(
        "python-slugify==8.0.4",
        "slugify:slugify",
        "slugify/*.py",
        "return (' '.join(''.join(rng.choices('abcDEF-_!', k=8)) for _ in range(12)),), {}",
        needs=("text-unidecode",),
    ),
    Subject(
        "rouge==1.0.1",
        "rouge.rouge_score:rouge_l_summary_level",
        "rouge/*.py",
        "texts = [' '.join(rng.choices(list('abcdefgh'), k=30)) for _ in range(4)]\n"
        "    return (texts[:2], texts[2:]), {}",
        needs=("six",),
    ),
    Subject(
        "roman==5.2",
        "roman:toRoman",
        "roman/*.py",
        "return (rng.randrange(1, 5000),), {}",
    ),
    Subject(
        LOCAL,
        "topological_sort:sort_with_helper",
        "topological_sort.py",
        "edges = [(rng.randrange(n), n) for n in range(1, 5000) for _ in range(2)]\n"
        "    return (5000, edges), {}",
    ),
    Subject(
        LOCAL,
        "bubble_sort:sort_with_temporary",
        "bubble_sort.py",
        "return ([rng.randrange(1000) for _ in range(100)],), {}",
    ),
    Subject(
        LOCAL,
        "common_tags:find_by_narrowing",
        "common_tags.py",
        "names = [f'tag {n}' for n in range(200)]\n"
        "    return ([{'tags': rng.sample(names, 150)} for _ in range(8)],), {}",
    ),
    Subject(
        LOCAL,
        "pig_latin:translate_with_helper",
        "pig_latin.py",
        "words = [''.join(rng.choices('bcdfgaeiouST', k=7)) for _ in range(200)]\n"
        "    return (' '.join(words),), {}",
    ),
    Subject(
        "titlecase==2.3",
        "titlecase:titlecase",
        "titlecase/*.py",
        "words = ['the', 'of', 'q&a', 'iPhone', 'word', 'mcDonald', 'x-ray', 'and']\n"
        "    return (' '.join(rng.choices(words, k=20)),), {}",
    ),
)


def fetch(subject: Subject, folder: Path) -> Path:
    """Write the subject's source, inputs and problem into a repository, and return its folder.

    Raises `CalledProcessError` if the package can't be downloaded.
    """
    top = folder / "source"
    if subject.package == LOCAL:
        top.mkdir()
        source = Path(__file__).with_name(LOCAL) / subject.editable
        text = source.read_text("utf-8").removeprefix("# ruff: noqa\n")
        (top / subject.editable).write_text(text, "utf-8")
    else:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
        subprocess.run([*pip, "download", *options, subject.package, *subject.needs], check=True)
        for archive in folder.glob("*.whl"):
            with zipfile.ZipFile(archive) as content:
                content.extractall(top)
    text = f"def make(rng):\n    {subject.inputs}\n"
    (top / "fairtrial_inputs.py").write_text(text, "utf-8")
    fields = {"call": subject.call, "editable": subject.editable}
    problem = PROBLEM.format(name=subject.name, **fields)
    (top / "problem.yaml").write_text(problem, "utf-8")
    git = [
        "git",
        "-C",
        str(top),
        "-c",
        "user.name=benchmark",
        "-c",
        "user.email=benchmark@localhost",
    ]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "unchanged"], check=True)
    return top


def optimize(top: Path, output: Path) -> dict[str, Any]:
    """Run one optimization by the offline proposer and return its JSON result."""
    process = subprocess.run(
        [
            *(sys.executable, "-m", "fairtrial", "optimize", str(top / "problem.yaml")),
            *("--max-candidates", "12", "--output", str(output), "--json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    result: dict[str, Any] = json.loads(process.stdout or "{}")
    if not result:
        return {"ok": False, "error": process.stderr.strip()[-300:]}
    if result.get("best"):
        with (output / "candidates.csv").open(newline="", encoding="utf-8") as table:
            names = {row["candidate_id"]: row["name"] for row in csv.DictReader(table)}
        result["name"] = names[result["best"]]
    return result


def format_row(subject: Subject, result: dict[str, Any]) -> str:
    """Return a row of the table."""
    start = f"| {subject.package} | `{subject.call}` |"
    if not result.get("ok"):
        return f"{start} could not be judged: {result.get('error')} | | |"
    counts = f"{result['candidates']} candidates, {result['passed']} passed"
    if not result.get("best"):
        return f"{start} nothing worth taking | | {counts} |"
    ratio = f"{result['ratio']:.2f}x [{result['low']:.2f}, {result['high']:.2f}]"
    return f"{start} {ratio} | `{result['name']}` | {counts} |"


def main() -> int:
    """Optimize all subjects, or those of one package, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="the package or the function, by the beginning of its name")
    parser.add_argument("--output", type=Path, default=Path("artifacts/real_packages"))
    arguments = parser.parse_args()
    print("| package | function | found | by | tried |\n|---|---|---|---|---|", flush=True)
    for subject in SUBJECTS:
        names = (subject.package, subject.call)
        if arguments.only and not any(name.startswith(arguments.only) for name in names):
            continue
        with tempfile.TemporaryDirectory(prefix="fairtrial-real-") as folder:
            try:
                top = fetch(subject, Path(folder))
            except (subprocess.CalledProcessError, ValueError, OSError) as error:
                print(format_row(subject, {"error": f"no source: {error}"}), flush=True)
                continue
            result = optimize(top, arguments.output.resolve() / subject.name)
        print(format_row(subject, result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

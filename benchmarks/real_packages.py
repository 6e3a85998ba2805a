"""What the offline proposer finds in functions of real packages, verified and timed.

    python benchmarks/real_packages.py [--only NAME] [--output FOLDER]

Sources come from the package registry by name and version, and stay out of this repository. Every
row is told, also where nothing was found. One optimisation takes up to some minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

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
    """A function of a package.

    package: its name and version
    call: the function
    editable: where candidates may change something
    inputs: the body of a function of `rng` that returns (args, kwargs)
    needs: what else it imports: taken along, and not editable
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
        "titlecase==2.3",
        "titlecase:titlecase",
        "titlecase/*.py",
        "words = ['the', 'of', 'q&a', 'iPhone', 'word', 'mcDonald', 'x-ray', 'and']\n"
        "    return (' '.join(rng.choices(words, k=20)),), {}",
    ),
)


def fetch(subject: Subject, folder: Path) -> Path:
    """The package's source, as a repository with one commit."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    subprocess.run([*pip, "download", *options, subject.package, *subject.needs], check=True)
    top = folder / "source"
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
    subprocess.run([*git, "commit", "--quiet", "--message", "as it is"], check=True)
    return top


def optimise(top: Path, output: Path) -> dict[str, object]:
    """One optimisation by the offline proposer, as its command tells it."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "fairtrial", "optimize", str(top / "problem.yaml")),
            *("--max-candidates", "12", "--output", str(output), "--json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    told: dict[str, object] = json.loads(done.stdout or "{}")
    return told or {"ok": False, "error": done.stderr.strip()[-300:]}


def tell(subject: Subject, told: dict[str, object]) -> str:
    """A row of the table."""
    if not told.get("ok"):
        return (
            f"| {subject.package} | `{subject.call}` | could not be judged: {told.get('error')} | |"
        )
    counts = f"{told['candidates']} candidates, {told['passed']} right"
    if not told.get("best"):
        return f"| {subject.package} | `{subject.call}` | nothing worth taking | {counts} |"
    found = f"{told['ratio']:.2f}x [{told['low']:.2f}, {told['high']:.2f}]"
    return f"| {subject.package} | `{subject.call}` | {found} | {counts} |"


def main() -> int:
    """All of them, or one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="one package, by the beginning of its name")
    parser.add_argument("--output", type=Path, default=Path("artifacts/real_packages"))
    given = parser.parse_args()
    print("| package | function | found | tried |\n|---|---|---|---|", flush=True)
    for subject in SUBJECTS:
        if given.only and not subject.package.startswith(given.only):
            continue
        with tempfile.TemporaryDirectory(prefix="fairtrial-real-") as folder:
            try:
                top = fetch(subject, Path(folder))
            except (subprocess.CalledProcessError, ValueError, OSError) as error:
                print(tell(subject, {"error": f"no source: {error}"}), flush=True)
                continue
            told = optimise(top, given.output.resolve() / subject.name)
        print(tell(subject, told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What judging code candidates costs, each figure against a named floor of the same run.

    python benchmarks/arena.py [--rounds 3] [--only small,opening,long,reset,overhead]

- small: 16 candidates with a small suite and a few third-party imports, against a fresh `pytest`
  process for each, one at a time, in a copied checkout
- opening: the start of an arena for an unchanged base with that suite, with recorded runs, against
  the start without; also the time until a first candidate is judged
- long: candidates with a suite of 5 s, two at a time, against what two bare processes reach
- reset: a slot put back to the base, against `git worktree add` + `git worktree remove`
- overhead: an isolated command, against the bare one
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from fairtrial import Candidate, Check, CodeProblem
from fairtrial.arena import ArenaSettings, Changes, FileState, open_arena
from fairtrial.arena.evaluation import judge_all
from fairtrial.arena.slots.pool import WorktreePool
from fairtrial.sandbox import Command, Mount, Sandbox, View
from fairtrial.sandbox.bubblewrap import Bubblewrap
from fairtrial.sandbox.namespaces import Namespaces

SMALL, LONG = 16, 6
"""How many candidates."""
FILES = 5_000
IMPORTS = "".join(
    f"import {name}\n" for name in ("numpy", "scipy.stats", "hypothesis", "msgspec", "yaml")
)
MODULE = """
def total(numbers):
    result = 0
    for number in numbers:
        result += number
    return result
"""


def make_tests(seconds: float, count: int, imports: str = IMPORTS) -> str:
    """Return a suite that takes about so many seconds of CPU, in so many tests."""
    spin = (
        "import time\nfrom sums import total\n\n"
        "def spin(seconds):\n"
        "    end = time.process_time() + seconds\n"
        "    while time.process_time() < end:\n"
        "        assert total(range(100)) == 4950\n"
    )
    cases = "".join(
        f"\ndef test_{number}():\n    spin({seconds / count})\n" for number in range(count)
    )
    return imports + spin + cases


def make_project(folder: Path, seconds: float, count: int, imports: str = IMPORTS) -> Path:
    """Make a git repository with a module and its tests."""
    (folder / "src").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "src" / "sums.py").write_text(MODULE)
    (folder / "tests" / "test_sums.py").write_text(make_tests(seconds, count, imports))
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["src"]\n')
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    """All that is in a folder, as a repository of one commit."""
    who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "base"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def candidates(count: int) -> list[Candidate]:
    """As many that are right, and that all differ."""
    return [
        Candidate(
            f"candidate-{number}",
            files={"src/sums.py": FileState(f"{MODULE}\n\nNUMBER = {number}\n".encode())},
        )
        for number in range(count)
    ]


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# -- 16 small ones, and a suite of 5 s --


def run_fresh(project: Path, candidate: Candidate, folder: Path) -> None:
    """One candidate the plain way: copy the checkout, write the files, run pytest."""
    copy = folder / candidate.name
    shutil.copytree(project, copy)
    for path, state in candidate.files.items():
        (copy / path).write_bytes(state.content)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/"], cwd=copy, capture_output=True
    )
    assert done.returncode == 0, done.stdout.decode()
    shutil.rmtree(copy)


def run_arena(
    project: Path,
    count: int,
    slots: int,
    *,
    warm: bool,
    cache: bool = False,
    lock_folder: Path | None = None,
) -> tuple[float, float]:
    """Seconds until the arena was ready, and then until all were judged."""
    problem = CodeProblem(
        problem_id="sums",
        check=(Check(command=("{python}", "-m", "pytest", "-q", "tests/")),),
        python=sys.executable,
        editable=("src/**/*.py",),
        folder=project,
    )

    async def run() -> tuple[float, float]:
        began = time.perf_counter()
        settings = ArenaSettings(warm=warm, cache=cache, lock_folder=lock_folder)
        async with open_arena(problem, slots=slots, settings=settings) as arena:
            ready = time.perf_counter()
            judgements = await judge_all(arena, candidates(count))
            done = time.perf_counter()
        assert all(each.verdict == "passed" for each in judgements), judgements
        return ready - began, done - ready

    return anyio.run(run)


def compare_small(folder: Path) -> None:
    project = make_project(folder / "small", 0.1, 10)
    fresh = timed(lambda: [run_fresh(project, each, folder) for each in candidates(SMALL)])
    for warm in (True, False):
        ready, judged = run_arena(project, SMALL, 4, warm=warm)
        print(
            f"small, {'warm' if warm else 'cold'}: {fresh / judged:.2f}x the candidates per minute "
            f"({SMALL} in {judged:.1f} s, fresh processes {fresh:.1f} s); with the {ready:.1f} s "
            f"until the base is understood {fresh / (ready + judged):.2f}x"
        )


def compare_opening(folder: Path) -> None:
    project = make_project(folder / "small", 0.1, 10)
    locks = folder / "locks"  # so that nobody else's timing is waited for
    locks.mkdir()
    os.environ["FAIRTRIAL_HOME"] = str(folder / "home")
    run_arena(project, 1, 2, warm=True, cache=True, lock_folder=locks)
    figures = [
        run_arena(project, 1, 2, warm=True, cache=cache, lock_folder=locks)
        for cache in (False, True) * 3
    ]
    without, recorded = figures[::2], figures[1::2]
    ratios = [after / before for (before, _), (after, _) in zip(without, recorded, strict=True)]
    for name, runs in (("without", without), ("with", recorded)):
        ready = statistics.median(ready for ready, _ in runs)
        judged = statistics.median(ready + judged for ready, judged in runs)
        print(f"opening, {name} recorded runs: {ready:.2f} s; first candidate after {judged:.2f} s")
    shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"opening: {statistics.median(ratios):.2f} of the time without recorded runs ({shown})")


def compare_long(folder: Path) -> None:
    project = make_project(folder / "long", 5.0, 10)
    words = [sys.executable, "-m", "pytest", "-q", "tests/"]

    def alone() -> None:
        subprocess.run(words, cwd=project, check=True, capture_output=True)

    def side_by_side() -> None:
        both = [subprocess.Popen(words, cwd=project, stdout=subprocess.DEVNULL) for _ in range(2)]
        for each in both:
            assert each.wait() == 0

    one, two = timed(alone), timed(side_by_side)
    scaling = 2 * one / two
    _, judged = run_arena(project, LONG, 2, warm=True)
    ours = LONG * one / judged
    print(
        f"long: {ours / scaling:.2f} of the two-process scaling ({ours:.2f}x one at a time; two "
        f"bare processes reach {scaling:.2f}x)"
    )


# -- reset --


def compare_reset(folder: Path) -> None:
    project = folder / "many"
    for number in range(FILES):
        path = project / f"package{number % 50}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"NUMBER = {number}\n" * 20)
    commit(project)
    plain, ours = [], []

    async def run() -> None:
        async with WorktreePool(project, 1) as pool:
            for place in range(9):
                plain.append(
                    timed(lambda place=place: add_and_remove(project, folder / f"w{place}"))
                )
                async with pool.acquire() as slot:
                    files = {
                        "package0/module0.py": FileState(b"changed"),
                        "new/file.py": FileState(b""),
                    }
                    await slot.write_candidate(Changes(files, "x"))
                    began = time.perf_counter()
                    await slot.reset()
                    ours.append(time.perf_counter() - began)

    anyio.run(run)
    pairs = [each / other for each, other in zip(plain, ours, strict=True)]
    print(
        f"reset: {statistics.median(pairs):.1f}x faster ({statistics.median(ours) * 1e3:.0f} ms, "
        f"add + remove {statistics.median(plain) * 1e3:.0f} ms; {min(pairs):.1f} to "
        f"{max(pairs):.1f}; in the first second {pairs[0]:.1f})"
    )


def add_and_remove(project: Path, place: Path) -> None:
    for words in (["add", "-q", "--detach", str(place)], ["remove", "--force", str(place)]):
        subprocess.run(["git", "worktree", *words], cwd=project, check=True, capture_output=True)


# -- overhead --


def compare_overhead(folder: Path) -> None:
    slot = folder / "slot"
    slot.mkdir()
    words = (sys.executable, "-c", "pass")
    roots = {Path(sys.prefix), Path(sys.base_prefix)}
    command = Command(
        argv=words,
        cwd=slot,
        env={"PATH": os.defpath},
        view=View(
            readable=tuple(Mount(root, root) for root in roots), writable=(Mount(slot, slot),)
        ),
    )
    sandboxes: list[Sandbox] = [Bubblewrap(), Namespaces()]

    async def run() -> None:
        for sandbox in sandboxes:
            await sandbox.run(command)
            extra = []
            for _ in range(15):
                bare = timed(lambda: subprocess.run(words, check=True, cwd=slot))
                began = time.perf_counter()
                await sandbox.run(command)
                extra.append(time.perf_counter() - began - bare)
            print(
                f"overhead, {sandbox.name}: {statistics.median(extra) * 1e3:.0f} ms over the bare "
                f"command ({min(extra) * 1e3:.0f} to {max(extra) * 1e3:.0f})"
            )

    anyio.run(run)


PARTS = {
    "small": compare_small,
    "opening": compare_opening,
    "long": compare_long,
    "reset": compare_reset,
    "overhead": compare_overhead,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default=",".join(PARTS))
    given = parser.parse_args()
    for _ in range(given.rounds):
        for name in given.only.split(","):
            with tempfile.TemporaryDirectory(prefix="fairtrial-bench-") as folder:
                PARTS[name](Path(folder))


if __name__ == "__main__":
    main()

"""What warm starts gain: candidates checked warm and cold, on a small pytest project.

    python benchmarks/warm_starts.py [--candidates 8] [--rounds 3]

The project's tests take 0.1 s and import numpy; a second project imports scipy.stats, hypothesis,
msgspec and yaml as well. Each round opens an arena with warm starts and one without, in alternating
order, and reports the time until all candidates are judged, and the ratio of both. The time until
the arena is ready is reported separately: a warm start costs one more run of the base's checks.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from arena import IMPORTS, make_project, run_arena

PROJECTS = {"numpy": "import numpy\n", "numpy, scipy.stats, hypothesis, msgspec, yaml": IMPORTS}


def measure(project: Path, candidates: int, rounds: int) -> dict[bool, list[tuple[float, float]]]:
    """Return (seconds until ready, seconds for all candidates) of each round, by warm or cold."""
    figures: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for number in range(rounds):
        for warm in (True, False) if number % 2 else (False, True):
            figures[warm].append(run_arena(project, candidates, 2, warm=warm))
    return figures


def report(name: str, candidates: int, figures: dict[bool, list[tuple[float, float]]]) -> None:
    """Print the medians of both, and their ratio."""
    warm_s, cold_s = (median(judged for _, judged in figures[warm]) for warm in (True, False))
    ready_s, ready_cold_s = (median(ready for ready, _ in figures[warm]) for warm in (True, False))
    ratios = sorted(
        cold / warm for (_, warm), (_, cold) in zip(figures[True], figures[False], strict=True)
    )
    print(
        f"{name}: {candidates} candidates in {warm_s:.2f} s warm, {cold_s:.2f} s cold: "
        f"{cold_s / warm_s:.1f}x (rounds: {', '.join(f'{ratio:.1f}x' for ratio in ratios)}); "
        f"ready after {ready_s:.2f} s warm, {ready_cold_s:.2f} s cold",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for number, (name, imports) in enumerate(PROJECTS.items()):
        with tempfile.TemporaryDirectory(prefix="fairtrial-warm-") as folder:
            project = make_project(Path(folder) / str(number), 0.1, 10, imports)
            report(name, options.candidates, measure(project, options.candidates, options.rounds))


if __name__ == "__main__":
    main()

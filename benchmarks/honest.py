"""Honest but unusual candidates: none may be rejected, and none accused of hidden work.

    python benchmarks/honest.py [--timed] [--only NAME ...] [--repeat 1]

Each of them is added to the end of a module of `examples/attack` and computes what the base does:
with threads, caches, generators, tables, files in memory, in place, and so on. Without `--timed`
they are only checked. With it they are timed as well, and each veto is printed; an accusation is a
veto that doesn't say that it holds nothing against the candidate.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from fairtrial.arena import (
    ArenaSettings,
    Candidate,
    FileState,
    Judgement,
    evaluate_candidates,
    load_problem,
)
from honest_code.arrays import ARRAYS
from honest_code.lists import LISTS
from honest_code.more_lists import MORE_LISTS
from honest_code.others import PRINTS, WORKS

ATTACKED = Path(__file__).parents[1] / "examples" / "attack"
NO_ACCUSATION = ("nothing is held against", "says nothing against", "no gain is shown")
GROUPS = {
    "light.yaml": ("examples/attack/src/lab/lists.py", {**LISTS, **MORE_LISTS}),
    "numpy.yaml": ("examples/attack/src/lab/arrays.py", ARRAYS),
    "list.yaml": ("examples/attack/src/lab/lists.py", WORKS),
    "prints.yaml": ("examples/attack/src/lab/printing.py", PRINTS),
}


def make_candidates(path: str, codes: dict[str, str], only: list[str]) -> list[Candidate]:
    """Return a candidate for each piece of code, added to the end of a file."""
    source = (ATTACKED.parents[1] / path).read_text("utf-8")
    return [
        Candidate(name, files={path: FileState(f"{source}\n{code}".encode())})
        for name, code in codes.items()
        if not only or name in only
    ]


def judge(file: str, only: list[str], *, timed: bool) -> tuple[Judgement, ...]:
    """Judge all honest candidates of a problem."""
    path, codes = GROUPS[file]
    candidates = make_candidates(path, codes, only)
    if not candidates:
        return ()
    settings = ArenaSettings(timing="each" if timed else "none", audit=False)
    problem = load_problem(ATTACKED / file)
    evaluation = asyncio.run(evaluate_candidates(problem, candidates, settings=settings))
    return evaluation.judgements


def is_accusation(veto: str) -> bool:
    """Return whether a veto claims that a candidate hides work."""
    return not any(text in veto for text in NO_ACCUSATION)


def main() -> None:
    """Judge the candidates, and print those that are rejected or accused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timed", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    judged = rejected = accused = 0
    for file in list(GROUPS) * options.repeat:
        for judgement in judge(file, options.only, timed=options.timed):
            judged += 1
            if judgement.rejection is not None:
                rejected += 1
                print(f"{judgement.name}: rejected: {judgement.rejection.message}")
                continue
            measured = judgement.measurement
            vetoes = measured.vetoes if measured is not None else ()
            accused += any(map(is_accusation, vetoes))
            for veto in vetoes:
                print(f"{judgement.name}: {'accused' if is_accusation(veto) else 'doubt'}: {veto}")
    print(f"{judged} honest candidates: {rejected} rejected, {accused} accused")


if __name__ == "__main__":
    main()

"""The best that any run of a study of optimisers has found: its patch, and how sure that is.

python winner.py DIR
"""

from __future__ import annotations

import sys

from fairtrial import RunResult, open_results


def main(folder: str) -> None:
    """Print it."""
    with open_results(folder) as results:
        adopted = [result for result in results if result.outputs.get("adopt")]
    if not adopted:
        print("no run has found anything that is worth taking")
        return
    best = max(adopted, key=_low)
    told = best.outputs
    print(f"The winner is candidate {told['best']} of {best.run_id}:\n\n{told['patch']}")
    print(
        f"{told['ratio']:.2f} times as fast as before, {told['confidence']:.0%} interval "
        f"{told['low']:.2f} to {told['high']:.2f}, from {told['sessions']} sessions that were "
        "taken after its run had picked it"
    )
    print(f"more of it: fairtrial show {folder} {best.run_id}")


def _low(result: RunResult) -> float:
    """What is certain of a run's best."""
    return float(result.outputs["low"])


if __name__ == "__main__":
    main(sys.argv[1])

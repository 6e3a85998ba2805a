"""Noise models of real machines: fitted to recorded sessions of equal code, and drawn from.

A recording (`timing.py --only record`) has some dozen sessions of each workload: too few to draw
thousands of comparisons from, since the same few come again and again. A model of each recording
has four figures, and gives as many sessions as are wanted:

    x[i] = rho * x[i-1] + sqrt(1 - rho^2) * e[i],  e of Student's t with df degrees of freedom

`spread` is the standard deviation about the recording's mean, `rho` the autocorrelation of
successive sessions, `df` follows from their kurtosis (30 at most: as good as normal). `mean` is
what the recording says of two copies of equal code, with its standard error: it is not part of the
noise, but it should be 0.

    python benchmarks/recorded_noise.py FOLDER/record.jsonl   # fits; writes recorded/models.json
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

FOLDER = Path(__file__).resolve().parent / "recorded"
RECORDED = FOLDER / "record.jsonl"
"""Sessions of equal code on a real machine, by `timing.py --only record`."""
MODELS = FOLDER / "models.json"
LEAST_DF, MOST_DF = 3.0, 30.0
DIGITS = 4


def read_recordings(path: Path = RECORDED) -> list[dict[str, Any]]:
    """Return the recordings, one for each workload and run."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def fit(recording: dict[str, Any]) -> dict[str, Any]:
    """Return the model of a recording."""
    values = recording["values"]
    count = len(values)
    mean = math.fsum(values) / count
    rest = [value - mean for value in values]
    variance = math.fsum(x * x for x in rest) / (count - 1)
    joint = math.fsum(x * y for x, y in zip(rest[1:], rest, strict=False))
    rho = max(0.0, joint / math.fsum(x * x for x in rest))
    excess = math.fsum(x**4 for x in rest) / count / variance**2 - 3
    df = min(MOST_DF, max(LEAST_DF, 4 + 6 / excess)) if excess > 0 else MOST_DF
    error = math.sqrt(variance / count * (1 + rho) / (1 - rho))
    return {
        "workload": recording["workload"],
        "load": recording["load_before"],
        "sessions": count,
        "session_s": round(math.fsum(recording["session_s"]) / count, DIGITS),
        "spread": round(math.sqrt(variance), DIGITS),
        "rho": round(rho, DIGITS),
        "df": round(df, 1),
        "mean": round(mean, DIGITS),
        "standard_error": round(error, DIGITS),
    }


def read_models(path: Path = MODELS) -> list[dict[str, Any]]:
    """Return the fitted models."""
    models: list[dict[str, Any]] = json.loads(path.read_text())
    return models


def draw(model: dict[str, Any], runs: int, sessions: int, seed: int) -> np.ndarray:
    """Draw comparisons of equal code from a model: each row one, each column a session."""
    import numpy as np

    df, rho = model["df"], model["rho"]
    steps = np.random.default_rng(seed).standard_t(df, (runs, sessions))
    values = steps / math.sqrt(df / (df - 2))
    for at in range(1, sessions):
        values[:, at] = rho * values[:, at - 1] + math.sqrt(1 - rho * rho) * values[:, at]
    return model["spread"] * values


def draw_again(values: Sequence[float], runs: int, sessions: int, block: int, seed: int) -> Any:
    """Draw comparisons from recorded sessions of equal code, in blocks that keep their order.

    Each block swaps base and candidate by chance.
    """
    import numpy as np

    taken = np.asarray(values)
    blocks = -(-sessions // block)
    starts = np.random.default_rng(seed).integers(0, len(taken), (runs, blocks, 1))
    places = (starts + np.arange(block)) % len(taken)
    signs = np.random.default_rng(seed + 1).choice([-1.0, 1.0], (runs, blocks, 1))
    return (signs * taken[places]).reshape(runs, -1)[:, :sessions]


def main() -> None:
    recordings = [one for path in sys.argv[1:] or [RECORDED] for one in read_recordings(Path(path))]
    models = [fit(recording) for recording in recordings]
    MODELS.write_text(json.dumps(models, indent=1) + "\n")
    for model in models:
        print(model)


if __name__ == "__main__":
    main()

"""Input makers, in two forms.

`made`: as `generate_problem` returns problems. `stored`: as AlgoTune's solvers get them. It writes
them to files, where a list of numbers of more than 100 KB (as an array) becomes an array of floats.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

STORED_ARRAY_BYTES = 100 * 1024


def to_array(value: Any) -> Any:
    """Return a list of numbers as an array of floats; None if it isn't one."""
    if not (isinstance(value, list) and value and isinstance(value[0], (list, int, float))):
        return None
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None


def find_stored_arrays(problem: Any, path: str = "") -> list[str]:
    """Return the paths of the lists that are stored as arrays; all items of a list are one path."""
    array = to_array(problem)
    if array is not None and array.nbytes > STORED_ARRAY_BYTES:
        return [path]
    if isinstance(problem, dict):
        parts = [(f"{path}/{key}", part) for key, part in problem.items()]
    elif isinstance(problem, (list, tuple)):
        parts = [(f"{path}/*", part) for part in problem]
    else:
        return []
    return sorted({found for name, part in parts for found in find_stored_arrays(part, name)})


def as_stored(problem: Any, paths: list[str], path: str = "") -> Any:
    """Return a problem with the lists at some paths as arrays, and scalars of numpy as Python's."""
    if path in paths:
        array = to_array(problem)
        return problem if array is None else array
    if isinstance(problem, dict):
        return {key: as_stored(part, paths, f"{path}/{key}") for key, part in problem.items()}
    if type(problem) in (list, tuple):
        return type(problem)(as_stored(part, paths, f"{path}/*") for part in problem)
    if isinstance(problem, np.generic):
        return problem.item()
    return problem


def _draw(rng: random.Random) -> tuple[Any, list[str]]:
    from reference import TASK

    sizes = json.loads((Path(__file__).parent / "size.json").read_text("utf-8"))
    problem = TASK.generate_problem(sizes["size"], rng.randrange(2**31))
    return problem, sizes["stored_arrays"]


def stored(rng: random.Random) -> tuple[tuple[Any], dict[str, Any]]:
    """Make a problem as solvers get it from AlgoTune's files."""
    problem, paths = _draw(rng)
    return (as_stored(problem, paths),), {}


def made(rng: random.Random) -> tuple[tuple[Any], dict[str, Any]]:
    """Make a problem as the task makes it."""
    return (_draw(rng)[0],), {}

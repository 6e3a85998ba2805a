"""Seed the global random number generators for each run, and restore their state."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SEEDS = 2**32
"""The upper limit of numpy's seeds."""


def global_seeder() -> Callable[[int], None]:
    """Return a function that seeds `random` and `numpy.random`; imports numpy now, not in a run."""
    import numpy as np

    # Does what `random.seed` does with an integer, without its type checks.
    shared: random.Random = random.seed.__self__  # type: ignore[attr-defined]
    seed_random, seed_numpy = super(random.Random, shared).seed, np.random.seed

    def seed_globals(seed: int) -> None:
        seed_random(seed)
        shared.gauss_next = None  # type: ignore[attr-defined]
        seed_numpy(seed % SEEDS)

    return seed_globals


@contextmanager
def preserved_rng() -> Iterator[None]:
    """Restore the state of `random` and `numpy.random` at the end of the block."""
    import numpy as np

    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)


@contextmanager
def reproducible_seed(seed: int) -> Iterator[None]:
    """Seed `random` and `numpy.random` within the block, and restore their state after it."""
    with preserved_rng():
        global_seeder()(seed)
        yield

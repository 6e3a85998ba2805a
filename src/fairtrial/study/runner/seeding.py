"""The global random number generators: seeded for each run, and given back as they were."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SEEDS = 2**32
"""numpy's seeds lie below this."""


def global_seeder() -> Callable[[int], None]:
    """A function that seeds `random` and `numpy.random`; numpy is imported here, not in a run."""
    import numpy as np

    # What `random.seed` does with a whole number, without asking each time whether it is one.
    shared: random.Random = random.seed.__self__  # type: ignore[attr-defined]
    seed_random, seed_numpy = super(random.Random, shared).seed, np.random.seed

    def seed_globals(seed: int) -> None:
        seed_random(seed)
        shared.gauss_next = None  # type: ignore[attr-defined]
        seed_numpy(seed % SEEDS)

    return seed_globals


@contextmanager
def preserved_rng() -> Iterator[None]:
    """Whatever happens inside, `random` and `numpy.random` go on afterwards as if it hadn't."""
    import numpy as np

    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)


@contextmanager
def reproducible_seed(seed: int) -> Iterator[None]:
    """Inside, `random` and `numpy.random` are seeded; afterwards they go on as before."""
    with preserved_rng():
        global_seeder()(seed)
        yield

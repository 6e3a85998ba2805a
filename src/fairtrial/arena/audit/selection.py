"""The order of mutants: by a seed, spread over functions and lines."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

from fairtrial.arena.audit.mutations import Mutation


def order_mutations(mutations: Iterable[Mutation], seed: int) -> list[Mutation]:
    """Return mutations in random order, in which functions take turns, and within each its lines.

    So the first ones are spread over all that there is.
    """
    rng = random.Random(seed)
    by_function: dict[tuple[str, str], dict[int, list[Mutation]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for mutation in mutations:
        by_function[mutation.path, mutation.function][mutation.line].append(mutation)
    queues = [_interleave(list(lines.values()), rng) for lines in by_function.values()]
    rng.shuffle(queues)
    return _take_turns(queues)


def _interleave(lines: list[list[Mutation]], rng: random.Random) -> list[Mutation]:
    """Return the mutations of a function: one of each line first, then a second one of each."""
    for line in lines:
        rng.shuffle(line)
    rng.shuffle(lines)
    return _take_turns(lines)


def _take_turns(queues: list[list[Mutation]]) -> list[Mutation]:
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]

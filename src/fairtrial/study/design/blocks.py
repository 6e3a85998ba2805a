"""Designs for runs that come in groups: randomised within blocks, or in sequence within subjects.

Both make every combination of levels in every block, so their ids are those of the full factorial;
what they settle is the order.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.study.design.constraints import Judge
from fairtrial.study.design.factorial import combinations, count_conditions
from fairtrial.study.design.rows import Assignment, block_assignments
from fairtrial.study.design.runs import SUBJECT, count_replicates
from fairtrial.study.model.conditions import DesignRow, DesignTable
from fairtrial.study.model.study import Study


@dataclass(frozen=True)
class RandomizedBlock:
    """All combinations in every block, each block in a random order of its own.

    The rows come block by block; without blocks the study is one block. The order is the design's
    own, so `randomize` and `counterbalance` change nothing.
    """

    def table(self, study: Study) -> DesignTable:
        return DesignTable(size=count_conditions(study), rows=_shuffled(study), settled=True)


def _shuffled(study: Study) -> Iterator[DesignRow]:
    treatments = list(combinations(study.factors))
    kind = str(study.design_spec.kind)
    # One stream for all blocks: their orders are independent, and a block that is added last
    # leaves the others as they were.
    rng = random.Random(study.seed_policy.base_seed)
    for block in block_assignments(study):
        order = list(treatments)
        rng.shuffle(order)
        for place, factors in enumerate(order):
            yield DesignRow(factors, block, metadata={"design_kind": kind, "order_in_block": place})


@dataclass(frozen=True)
class RepeatedMeasures:
    """Every subject meets all combinations, in sequences that balance first-order carry-over.

    Over a full set of sequences (`Williams`) every combination stands equally often in every place
    and comes equally often right after every other one. The subject is the block named `subject`
    where there is one, else the replicate. What constraints rule out for a subject is left out of
    its sequence.
    """

    def table(self, study: Study) -> DesignTable:
        size = count_conditions(study)
        if size > study.design_spec.max_conditions:
            # Too large to be made: whoever asked refuses it by its size.
            return DesignTable(size=size, rows=(), settled=True)
        treatments = list(combinations(study.factors))
        groups = _subject_groups(study, treatments)
        # With a subject block each level is one subject; else each replicate is another one.
        named = [len(block.levels) for block in study.blocks if block.name == SUBJECT]
        cycles = 1 if named else count_replicates(study)
        facts = {
            **_balance(groups, cycles, "subjects" if named else "replicates"),
            "subjects": named[0] if named else cycles * len(groups),
        }
        rows = _sequenced(treatments, groups, cycles, str(study.design_spec.kind))
        return DesignTable(size=size, rows=rows, facts=facts, settled=True)


@dataclass(frozen=True)
class Williams:
    """Sequences of `size` treatments that are balanced for first-order carry-over.

    For an even number n of treatments n sequences do it: 0, 1, n-1, 2, n-2, ... and its cyclic
    shifts. An odd number takes these and their mirror images, 2n in all. E. J. Williams,
    "Experimental designs balanced for the estimation of residual effects of treatments",
    Australian Journal of Scientific Research A 2 (1949), 149-168.
    """

    size: int

    @property
    def count(self) -> int:
        """How many sequences there are."""
        return self.size if self.size % 2 == 0 or self.size == 1 else 2 * self.size

    def place(self, treatment: int, sequence: int) -> int:
        """Where a treatment stands in a sequence; all numbers count from 0.

        Computed, not looked up: a square of a thousand treatments has a million cells.
        """
        step = (treatment - sequence) % self.size
        place = 2 * step - 1 if 0 < step <= self.size // 2 else 2 * (-step % self.size)
        return place if sequence < self.size else self.size - 1 - place


@dataclass(frozen=True)
class SubjectGroup:
    """The subjects of one combination of blocks: a single one, or one for each replicate.

    block: the blocks' values
    admissible: the treatments that they may meet, by number
    excluded: those that constraints keep from them
    first_sequence: the sequence that the first of them gets; the next ones get the following
    """

    block: Assignment
    admissible: tuple[int, ...]
    excluded: tuple[int, ...]
    first_sequence: int

    @property
    def square(self) -> Williams:
        """The sequences over what they may meet."""
        return Williams(len(self.admissible))


def _subject_groups(study: Study, treatments: Sequence[Assignment]) -> list[SubjectGroup]:
    judge = Judge(study.constraints, study.folder)
    seen: Counter[Any] = Counter()
    groups = []
    for block in block_assignments(study):
        verdicts = [judge(factors, block)[0] for factors in treatments]
        admissible = tuple(number for number, verdict in enumerate(verdicts) if verdict)
        excluded = tuple(number for number, verdict in enumerate(verdicts) if not verdict)
        # Subjects are dealt sequences in turn, among those that meet the same treatments under
        # the same other blocks: each such company is balanced in itself.
        others = repr([block[name] for name in block if name != SUBJECT])
        company = (others if SUBJECT in block else "", admissible)
        groups.append(SubjectGroup(block, admissible, excluded, seen[company]))
        seen[company] += 1
    return groups


def _sequenced(
    treatments: Sequence[Assignment], groups: Sequence[SubjectGroup], cycles: int, kind: str
) -> Iterator[DesignRow]:
    for group in groups:
        square = group.square
        # Sequences recur after `count` subjects; a plan of fewer needs no more places than it has
        # subjects, and those of the earlier ones stay when others are added.
        numbers = [
            (group.first_sequence + cycle) % square.count
            for cycle in range(min(cycles, square.count))
        ]
        places = {
            treatment: [square.place(index, number) for number in numbers]
            for index, treatment in enumerate(group.admissible)
        }
        for treatment in sorted(places, key=places.__getitem__):
            metadata = _metadata(kind, places[treatment])
            yield DesignRow(treatments[treatment], group.block, metadata=metadata)
        for treatment in group.excluded:
            yield DesignRow(treatments[treatment], group.block, metadata=_metadata(kind, []))


def _metadata(kind: str, places: list[int]) -> dict[str, Any]:
    """What the execution order reads: a block's subject r has place ``places[r % len(places)]``."""
    return {
        "design_kind": kind,
        "within_subject_order": places[0] if places else None,
        "within_subject_positions": places,
    }


def _balance(groups: Sequence[SubjectGroup], cycles: int, unit: str) -> Mapping[str, Any]:
    """How many sequences there are, and whether the subjects use them all alike."""
    uses: dict[tuple[int, ...], Counter[int]] = {}
    for group in groups:
        used = uses.setdefault(group.admissible, Counter())
        # Whole rounds use every sequence alike; what is left over decides.
        for cycle in range(cycles % max(group.square.count, 1)):
            used[(group.first_sequence + cycle) % group.square.count] += 1
    counts = {admissible: Williams(len(admissible)).count for admissible in uses if admissible}
    balanced = all(
        len(set(map(uses[admissible].__getitem__, range(count)))) == 1
        for admissible, count in counts.items()
    )
    facts: dict[str, Any] = {
        "sequences": sum(counts.values()),
        "carry_over_balanced": balanced,
    }
    if not balanced:
        among = "" if len(counts) == 1 else " for each set of admissible treatments"
        facts["advice"] = f"use a multiple of {math.lcm(*counts.values())} {unit}{among}"
    return facts

"""Designs with blocks: randomized blocks, and repeated measures of subjects.

Both have every combination of levels in every block, so their ids are those of the full factorial;
they differ in the order.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.study.design.constraints import ConstraintChecker
from fairtrial.study.design.factorial import combinations, count_conditions
from fairtrial.study.design.rows import Assignment, block_assignments
from fairtrial.study.design.runs import SUBJECT, count_replicates
from fairtrial.study.model.conditions import DesignRow, DesignTable
from fairtrial.study.model.study import Study


@dataclass(frozen=True)
class RandomizedBlock:
    """All combinations in every block, each block in a random order of its own.

    The rows are ordered by block; without blocks the study is one block. `randomize` and
    `counterbalance` have no effect.
    """

    def table(self, study: Study) -> DesignTable:
        """Return the table of all combinations, shuffled in each block."""
        rows = _generate_shuffled_rows(study)
        return DesignTable(size=count_conditions(study), rows=rows, settled=True)


def _generate_shuffled_rows(study: Study) -> Iterator[DesignRow]:
    treatments = list(combinations(study.factors))
    kind = str(study.design_spec.kind)
    # One generator for all blocks: their orders are independent, and adding a block at the end
    # doesn't change those of the others.
    rng = random.Random(study.seed_policy.base_seed)
    for block in block_assignments(study):
        order = list(treatments)
        rng.shuffle(order)
        for position, factors in enumerate(order):
            metadata = {"design_kind": kind, "order_in_block": position}
            yield DesignRow(factors, block, metadata=metadata)


@dataclass(frozen=True)
class RepeatedMeasures:
    """Every subject gets all combinations, in sequences that balance first-order carry-over.

    Over a full set of sequences (a Williams design) every combination is equally often at every
    position and equally often right after every other one. Subjects are the levels of the block
    `subject` or, without such a block, the replicates. Combinations that constraints exclude for a
    subject are left out of its sequence.
    """

    def table(self, study: Study) -> DesignTable:
        """Return the table of all combinations, with each subject's sequence in the metadata."""
        size = count_conditions(study)
        if size > study.design_spec.max_conditions:
            # Not generated: the caller refuses the table by its size.
            return DesignTable(size=size, rows=(), settled=True)
        treatments = list(combinations(study.factors))
        groups = _make_subject_groups(study, treatments)
        # With a block `subject` each of its levels is a subject, otherwise each replicate is.
        subject_counts = [len(block.levels) for block in study.blocks if block.name == SUBJECT]
        cycles = 1 if subject_counts else count_replicates(study)
        facts = {
            **_describe_balance(groups, cycles, "subjects" if subject_counts else "replicates"),
            "subjects": subject_counts[0] if subject_counts else cycles * len(groups),
        }
        rows = _generate_sequences(treatments, groups, cycles, str(study.design_spec.kind))
        return DesignTable(size=size, rows=rows, facts=facts, settled=True)


@dataclass(frozen=True)
class WilliamsDesign:
    """Sequences of `size` treatments that are balanced for first-order carry-over.

    For an even number n of treatments there are n sequences: 0, 1, n-1, 2, n-2, ... and its cyclic
    shifts. For an odd number there are also their mirror images, 2n in all. E. J. Williams,
    "Experimental designs balanced for the estimation of residual effects of treatments",
    Australian Journal of Scientific Research A 2 (1949), 149-168.
    """

    size: int

    @property
    def count(self) -> int:
        """The number of sequences."""
        return self.size if self.size % 2 == 0 or self.size == 1 else 2 * self.size

    def find_position(self, treatment: int, sequence: int) -> int:
        """Return the position of a treatment in a sequence; all numbers count from 0.

        It is computed, as a table for a thousand treatments would have a million cells.
        """
        step = (treatment - sequence) % self.size
        position = 2 * step - 1 if 0 < step <= self.size // 2 else 2 * (-step % self.size)
        return position if sequence < self.size else self.size - 1 - position


@dataclass(frozen=True)
class SubjectGroup:
    """The subjects of one combination of blocks: a single one, or one for each replicate.

    block: the levels of the blocks
    admissible: the indexes of the treatments that the subjects get
    excluded: the indexes of the treatments that constraints exclude
    first_sequence: the sequence of the first subject; the others have the following sequences
    """

    block: Assignment
    admissible: tuple[int, ...]
    excluded: tuple[int, ...]
    first_sequence: int

    @property
    def sequences(self) -> WilliamsDesign:
        """The sequences of the admissible treatments."""
        return WilliamsDesign(len(self.admissible))


def _make_subject_groups(study: Study, treatments: Sequence[Assignment]) -> list[SubjectGroup]:
    check = ConstraintChecker(study.constraints, study.folder)
    subject_counts: Counter[Any] = Counter()
    groups = []
    for block in block_assignments(study):
        results = [check(factors, block)[0] for factors in treatments]
        admissible = tuple(index for index, may_run in enumerate(results) if may_run)
        excluded = tuple(index for index, may_run in enumerate(results) if not may_run)
        # Sequences are assigned in turn among subjects with the same treatments and the same other
        # blocks, so that each such set of subjects is balanced.
        other_blocks = repr([block[name] for name in block if name != SUBJECT])
        key = (other_blocks if SUBJECT in block else "", admissible)
        groups.append(SubjectGroup(block, admissible, excluded, subject_counts[key]))
        subject_counts[key] += 1
    return groups


def _generate_sequences(
    treatments: Sequence[Assignment], groups: Sequence[SubjectGroup], cycles: int, kind: str
) -> Iterator[DesignRow]:
    for group in groups:
        sequences = group.sequences
        # Sequences repeat after `count` subjects. Positions are listed only for as many subjects as
        # there are, so those of earlier subjects stay when others are added.
        numbers = [
            (group.first_sequence + cycle) % sequences.count
            for cycle in range(min(cycles, sequences.count))
        ]
        positions = {
            treatment: [sequences.find_position(index, number) for number in numbers]
            for index, treatment in enumerate(group.admissible)
        }
        for treatment in sorted(positions, key=positions.__getitem__):
            metadata = _make_metadata(kind, positions[treatment])
            yield DesignRow(treatments[treatment], group.block, metadata=metadata)
        for treatment in group.excluded:
            yield DesignRow(treatments[treatment], group.block, metadata=_make_metadata(kind, []))


def _make_metadata(kind: str, positions: list[int]) -> dict[str, Any]:
    """Return the metadata that the execution order reads.

    Subject r of a block has the treatment at position ``positions[r % len(positions)]``.
    """
    return {
        "design_kind": kind,
        "within_subject_order": positions[0] if positions else None,
        "within_subject_positions": positions,
    }


def _describe_balance(groups: Sequence[SubjectGroup], cycles: int, unit: str) -> Mapping[str, Any]:
    """Return the number of sequences, and whether all of them are used equally often."""
    uses: dict[tuple[int, ...], Counter[int]] = {}
    for group in groups:
        used = uses.setdefault(group.admissible, Counter())
        # Complete cycles use every sequence equally often; only the remainder matters.
        for cycle in range(cycles % max(group.sequences.count, 1)):
            used[(group.first_sequence + cycle) % group.sequences.count] += 1
    counts = {
        admissible: WilliamsDesign(len(admissible)).count for admissible in uses if admissible
    }
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

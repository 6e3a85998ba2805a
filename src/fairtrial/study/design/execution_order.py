"""The order of execution of planned runs."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence

from fairtrial.core import canonical_json
from fairtrial.study.design.look_schedule import schedule_looks
from fairtrial.study.design.runs import SUBJECT, count_replicates, plan_indexes
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.identity import hash_id
from fairtrial.study.model.study import Study


def execution_order(study: Study, conditions: Sequence[Condition]) -> array[int]:
    """Return the plan indexes of the runs in the order of execution, shuffled by the study's seed.

    In plan order replicates of a condition would be executed one after the other, so that any drift
    over time would look like an effect. Blocks are executed one after the other, each in an order
    of its own. Repeated measures keep the sequence of each subject. With planned looks, the runs of
    each look come before those of the next.
    """
    order = _random_order(study, conditions)
    schedule = schedule_looks(study, conditions)
    if schedule is None:
        return order
    batches = schedule.batches(study, conditions)
    return array("I", sorted(order, key=batches.__getitem__))


def _random_order(study: Study, conditions: Sequence[Condition]) -> array[int]:
    """Return the plan indexes in an order that the study's seed determines."""
    rng = random.Random(hash_id("order", {"base_seed": study.seed_policy.base_seed}))
    if study.design_spec.kind == DesignKind.REPEATED_MEASURES:
        return _order_by_subject(study, conditions, rng)
    groups: dict[str, array[int]] = {}
    for condition, indexes in plan_indexes(study, conditions):
        block = canonical_json(condition.block_assignments)
        groups.setdefault(block, array("I")).extend(indexes)
    order: array[int] = array("I")
    for block in list(groups):
        group = groups.pop(block)
        rng.shuffle(group)
        if not groups and not order:
            return group  # the only block: no second copy of millions of indexes
        order.extend(group)
    return order


def _order_by_subject(
    study: Study, conditions: Sequence[Condition], rng: random.Random
) -> array[int]:
    """Return the plan indexes session by session; the order of sessions is random.

    In each session the treatments of a subject keep their sequence.
    A session is one subject with one replicate, agent and problem. Subjects are the levels of the
    block `subject`, or the replicates if there is no such block. The sessions of one combination of
    other blocks come before those of the next.
    """
    groups: dict[str, dict[tuple[str, int, int], list[tuple[int, int]]]] = {}
    for condition, indexes in plan_indexes(study, conditions):
        blocks = condition.block_assignments
        other_blocks = {name: level for name, level in blocks.items() if name != SUBJECT}
        sessions = groups.setdefault(canonical_json(other_blocks), {})
        subject = canonical_json(blocks.get(SUBJECT))
        positions = condition.metadata["within_subject_positions"]
        pairs = len(indexes) // count_replicates(study)
        for offset, plan_index in enumerate(indexes):
            replicate, pair = divmod(offset, pairs)
            position = positions[replicate % len(positions)]
            session = (subject, replicate, pair)
            sessions.setdefault(session, []).append((position, plan_index))
    order: array[int] = array("I")
    for sessions in groups.values():
        keys = list(sessions)
        rng.shuffle(keys)
        order.extend(plan_index for key in keys for _, plan_index in sorted(sessions[key]))
    return order

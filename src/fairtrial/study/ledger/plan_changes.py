"""A plan that has changed: every run that is in both plans keeps its turn, and so its result."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import GONE

if TYPE_CHECKING:
    import numpy as np

Identity = tuple[int, str, int]
"""A turn, the id of its run, and the run's seed."""


def reconcile_order(reader: LedgerReader, plan: RunPlan) -> array[int]:
    """The order of execution for a plan that takes the place of the one in the ledger."""
    return carry(reader.plan, reader.order, plan, reader.removed_identities())


def carry(
    old: RunPlan, old_order: Sequence[int], new: RunPlan, gone: Iterable[Identity] = ()
) -> array[int]:
    """For each turn the place in the new plan; `GONE` for a run that isn't in it.

    A run is the same if its id and its seed are. New runs get turns after all others, in the new
    plan's own order of execution. A run that left the plan with an earlier change has lost its
    place, but not its result: where it comes back (the same id, the same seed) it takes up its old
    turn, which `gone` tells. One that left without a result is a new run.

    Takes some 40 bytes a run while it works.
    """
    import numpy as np

    ids, seeds = _identities(new)
    rank = np.argsort(ids)
    turn_ids, turn_seeds = _by_turn(old, old_order)
    revived = []
    for execution_index, run_id, seed in gone:
        revived.append(execution_index)
        turn_ids[execution_index], turn_seeds[execution_index] = _number(run_id), seed
    spots = np.minimum(np.searchsorted(ids, turn_ids, sorter=rank), max(len(ids) - 1, 0))
    carried = np.full(len(old_order), GONE, dtype=np.uint32)
    if len(ids):
        plan_indexes = rank[spots]
        same = (ids[plan_indexes] == turn_ids) & (seeds[plan_indexes] == turn_seeds)
        carried[same] = plan_indexes[same]
    taken = np.zeros(len(ids), dtype=bool)
    live = np.asarray(old_order, dtype=np.uint32) != GONE
    taken[carried[live & (carried != GONE)]] = True
    for execution_index in revived:
        plan_index = int(carried[execution_index])
        if plan_index != GONE and taken[plan_index]:
            carried[execution_index] = GONE  # its run has another turn by now
        elif plan_index != GONE:
            taken[plan_index] = True
    order = array("I", carried.tobytes())
    order.extend(plan_index for plan_index in new.order() if not taken[plan_index])
    return order


def _identities(plan: RunPlan) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The runs' ids as numbers, and their seeds, in plan order."""
    import numpy as np

    ids = np.empty(len(plan), dtype=np.uint64)
    seeds = np.empty(len(plan), dtype=np.uint32)
    for plan_index, spec in enumerate(plan.specs()):
        ids[plan_index], seeds[plan_index] = _number(spec.run_id), spec.seed
    return ids, seeds


def _by_turn(
    plan: RunPlan, order: Sequence[int]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The same by turn; what no run has where the turn's run is gone."""
    import numpy as np

    ids, seeds = _identities(plan)
    plan_indexes = np.asarray(order, dtype=np.uint32)
    live = plan_indexes != GONE
    turn_ids = np.full(len(plan_indexes), np.iinfo(np.uint64).max, dtype=np.uint64)
    turn_seeds = np.zeros(len(plan_indexes), dtype=np.uint32)
    turn_ids[live], turn_seeds[live] = ids[plan_indexes[live]], seeds[plan_indexes[live]]
    return turn_ids, turn_seeds


def _number(run_id: str) -> int:
    return int(run_id[4:], 16)

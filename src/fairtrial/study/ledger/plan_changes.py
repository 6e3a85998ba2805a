"""Map the order of execution to a changed plan: runs in both plans keep their index and result."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import REMOVED

if TYPE_CHECKING:
    import numpy as np

Identity = tuple[int, str, int]
"""An execution index, the id of its run, and the run's seed."""


def reconcile_order(reader: LedgerReader, plan: RunPlan) -> array[int]:
    """Return the order of execution for a plan that replaces the one in the ledger."""
    return map_order(reader.plan, reader.order, plan, reader.removed_identities())


def map_order(
    old: RunPlan, old_order: Sequence[int], new: RunPlan, removed: Iterable[Identity] = ()
) -> array[int]:
    """Return the new plan index for each execution index; `REMOVED` for runs that left the plan.

    Runs are the same if their ids and seeds are. New runs get execution indexes after all others,
    in the new plan's own order of execution. A run that left the plan with an earlier change has
    lost its plan index, but not its result: if it comes back, it gets its old execution index,
    which `removed` lists. A run that left without a result counts as new.

    Takes about 40 bytes of memory for each run.
    """
    import numpy as np

    ids, seeds = _identities(new)
    rank = np.argsort(ids)
    old_ids, old_seeds = _identities_by_execution_index(old, old_order)
    restored = []
    for index, run_id, seed in removed:
        restored.append(index)
        old_ids[index], old_seeds[index] = _run_number(run_id), seed
    positions = np.minimum(np.searchsorted(ids, old_ids, sorter=rank), max(len(ids) - 1, 0))
    mapped = np.full(len(old_order), REMOVED, dtype=np.uint32)
    if len(ids):
        plan_indexes = rank[positions]
        same = (ids[plan_indexes] == old_ids) & (seeds[plan_indexes] == old_seeds)
        mapped[same] = plan_indexes[same]
    taken = np.zeros(len(ids), dtype=bool)
    planned = np.asarray(old_order, dtype=np.uint32) != REMOVED
    taken[mapped[planned & (mapped != REMOVED)]] = True
    for index in restored:
        plan_index = int(mapped[index])
        if plan_index != REMOVED and taken[plan_index]:
            mapped[index] = REMOVED  # the run came back as a new one meanwhile
        elif plan_index != REMOVED:
            taken[plan_index] = True
    order = array("I", mapped.tobytes())
    order.extend(plan_index for plan_index in new.order() if not taken[plan_index])
    return order


def _identities(plan: RunPlan) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the ids of all runs as numbers, and their seeds, in plan order."""
    import numpy as np

    ids = np.empty(len(plan), dtype=np.uint64)
    seeds = np.empty(len(plan), dtype=np.uint32)
    for plan_index, spec in enumerate(plan.specs()):
        ids[plan_index], seeds[plan_index] = _run_number(spec.run_id), spec.seed
    return ids, seeds


def _identities_by_execution_index(
    plan: RunPlan, order: Sequence[int]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return ids and seeds by execution index; an impossible id where the run left the plan."""
    import numpy as np

    ids, seeds = _identities(plan)
    plan_indexes = np.asarray(order, dtype=np.uint32)
    planned = plan_indexes != REMOVED
    ordered_ids = np.full(len(plan_indexes), np.iinfo(np.uint64).max, dtype=np.uint64)
    ordered_seeds = np.zeros(len(plan_indexes), dtype=np.uint32)
    ordered_ids[planned] = ids[plan_indexes[planned]]
    ordered_seeds[planned] = seeds[plan_indexes[planned]]
    return ordered_ids, ordered_seeds


def _run_number(run_id: str) -> int:
    return int(run_id[4:], 16)

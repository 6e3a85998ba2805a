"""Slots are watched while their versions are timed: none may change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from fairtrial.arena.model.verdicts import Reason, Rejection
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.core import LabError


class Rejectable(Protocol):
    """A result that may be replaced by a rejection.

    rejection: set if the candidate failed
    """

    rejection: Rejection | None


R = TypeVar("R", bound=Rejectable)


async def guard_slots(
    slots: tuple[WorktreeSlot, WorktreeSlot], run: Callable[[], Awaitable[R]]
) -> R:
    """Time the versions in two slots; a candidate that changes its own slot is rejected.

    Empty folders don't count: the first sandbox in a slot makes the mount point of an environment
    that lies in the project.

    Raises `LabError` if the base's slot was changed.
    """
    before = [await slot.fingerprint(has_empty=False) for slot in slots]
    batch = await run()
    after = [await slot.fingerprint(has_empty=False) for slot in slots]
    if before[0] != after[0]:
        await slots[0].restage()  # later candidates are timed against the unchanged base
        raise LabError("the base's slot was changed while it was timed: nothing of it counts")
    if before[1] != after[1] and batch.rejection is None:
        message = "its own slot was changed while it was timed"
        batch.rejection = Rejection(Reason.TAMPERING, message)
    return batch

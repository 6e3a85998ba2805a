"""Work that the clock doesn't see since another process did it, or another core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fairtrial.arena.model.timings import Arm, Pair
from fairtrial.arena.timing.session import ARMS, Turns
from fairtrial.sandbox import Completed


def count_hidden(turns: Turns, done: Mapping[Arm, Completed], cores: int) -> Pair:
    """What each did per round while it wasn't timed, with what other processes than its worker did.

    done: how the workers ended; tells the CPU time of all that ran in their sandboxes
    cores: how many a sample may use
    """
    outside = turns.outside_s
    for arm in ARMS:
        own_s = turns.cpu_s[arm]
        if arm in done and own_s is not None:
            more_s = _beyond(turns, arm, done[arm].cpu_s - own_s, cores)
            outside = replace(outside, **{arm: getattr(outside, arm) + more_s})
    return outside


def _beyond(turns: Turns, arm: Arm, others_s: float, cores: int) -> float:
    """CPU time per round that can't have been used on these cores while the clock ran."""
    timed = [each for each in turns.samples if each.arm == arm and each.calls]
    kept = [each for each in timed if each.is_kept]
    wall_s, cpu_s = _sum(turns, arm)
    base_wall_s, base_cpu_s = _sum(turns, "base")
    if not kept or not base_wall_s:
        return 0.0
    # How much of a core there was: others on the machine may use it, too. Who got more of it than
    # the base has done nothing wrong; who used more than there is has been on other cores.
    had = min(1.0, base_cpu_s / base_wall_s)
    free_s = max(cores * wall_s * had - cpu_s, min(0.0, cores * wall_s - cpu_s))
    calls = 1 + sum(each.calls for each in timed)  # with the warm-up
    left_s = free_s * calls / sum(each.calls for each in kept)
    return max(0.0, others_s - left_s) / len(timed)


def _sum(turns: Turns, arm: Arm) -> tuple[float, float]:
    """Wall and CPU time of all samples that count."""
    kept = [each for each in turns.samples if each.arm == arm and each.is_kept]
    return sum(each.wall_s for each in kept), sum(each.cpu_s or 0.0 for each in kept)

"""Work that timed samples don't contain because other processes or other cores did it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fairtrial.arena.model.timings import Arm, Pair
from fairtrial.arena.timing.session import ARMS, SessionTurns
from fairtrial.sandbox import Completed


def count_hidden(session: SessionTurns, done: Mapping[Arm, Completed], cores: int) -> Pair:
    """Return the CPU time per round that base and candidate used outside of their samples.

    It includes the time of other processes than their workers.

    done: how the workers ended, with the CPU time of all processes in their sandboxes
    cores: how many cores a sample may use
    """
    outside = session.outside_s
    for arm in ARMS:
        own_s = session.cpu_s[arm]
        if arm in done and own_s is not None:
            more_s = _excess_s(session, arm, done[arm].cpu_s - own_s, cores)
            outside = replace(outside, **{arm: getattr(outside, arm) + more_s})
    return outside


def count_others(session: SessionTurns, done: Mapping[Arm, Completed], cores: int) -> Pair | None:
    """Return the CPU time per round of other processes than the workers, of base and candidate.

    None if a benchmark may use several cores, or other processes aren't counted.
    """
    figures = []
    for arm in ARMS:
        own_s, ended = session.cpu_s[arm], done.get(arm)
        rounds = sum(sample.arm == arm and sample.calls > 0 for sample in session.samples)
        if cores > 1 or own_s is None or ended is None or not ended.counts_all_cpu or not rounds:
            return None
        figures.append(max(0.0, ended.cpu_s - own_s) / rounds)
    return Pair(*figures)


def _excess_s(session: SessionTurns, arm: Arm, others_s: float, cores: int) -> float:
    """Return the CPU time per round that can't have been used on these cores during samples.

    others_s: CPU time of all processes of this arm but its worker
    """
    timed = [sample for sample in session.samples if sample.arm == arm and sample.calls]
    kept = [sample for sample in timed if sample.is_kept]
    wall_s, cpu_s = _sum(session, arm)
    base_wall_s, base_cpu_s = _sum(session, "base")
    if not kept or not base_wall_s:
        return 0.0
    # The share of a core that was available: other programs on the machine may use it, too. Getting
    # more of it than the base is no offense; using more than there is means other cores were used.
    available = min(1.0, base_cpu_s / base_wall_s)
    free_s = max(cores * wall_s * available - cpu_s, min(0.0, cores * wall_s - cpu_s))
    calls = 1 + sum(sample.calls for sample in timed)  # with the warm-up
    allowed_s = free_s * calls / sum(sample.calls for sample in kept)
    return max(0.0, others_s - allowed_s) / len(timed)


def _sum(session: SessionTurns, arm: Arm) -> tuple[float, float]:
    """Return wall and CPU time of all samples that count."""
    kept = [sample for sample in session.samples if sample.arm == arm and sample.is_kept]
    return sum(sample.wall_s for sample in kept), sum(sample.cpu_s or 0.0 for sample in kept)

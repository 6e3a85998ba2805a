"""What a run needs of the machine that it runs on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fairtrial.core import Mistake, Record

Demand = tuple[tuple[str, float], ...]
"""Amounts that one run needs, by name of the resource, sorted; empty if nothing is stated."""
NAMES = ("cpus", "gpus", "memory_gb")


@dataclass(frozen=True, slots=True)
class Resources(Record):
    """What each run of an agent or problem needs of its machine.

    cpus: CPUs, possibly a part of one
    gpus: GPUs, possibly a part of one
    memory_gb: memory in GB (of 1024**3 bytes)
    custom: further resources of a Ray cluster, by the names that its nodes were started with
    """

    cpus: float = 1.0
    gpus: float = 0.0
    memory_gb: float = 0.0
    custom: Mapping[str, float] = field(default_factory=dict)

    def _mistakes(self) -> Iterator[Mistake]:
        for name in NAMES:
            if getattr(self, name) < 0:
                yield Mistake((name,), f"must be 0 or more, got {getattr(self, name):g}")
        for name, amount in self.custom.items():
            if name in NAMES or name in ("CPU", "GPU", "memory"):
                yield Mistake(("custom", name), "is a resource with a key of its own")
            elif amount <= 0:
                yield Mistake(("custom", name), f"must be above 0, got {amount:g}")

    def amounts(self) -> dict[str, float]:
        """Return all amounts by name, without those that are 0."""
        all_amounts = {**{name: getattr(self, name) for name in NAMES}, **self.custom}
        return {name: amount for name, amount in all_amounts.items() if amount}


class WorkNeeds(NamedTuple):
    """What the runs of a study need of the machines that they run on.

    demands: each demand that a run of the study has; none if no run states one
    environment: names of environment variables
    folder: the study's folder, if it has one
    output: the output directory, which other machines don't need
    packers: pack what problems read beside it, for other machines; None if nothing
    """

    demands: tuple[Demand, ...] = ()
    environment: tuple[str, ...] = ()
    folder: Path | None = None
    output: Path | None = None
    packers: tuple[Callable[[], Any], ...] = ()


NO_NEEDS = WorkNeeds()


def join_demands(*given: Resources | None) -> Demand:
    """Return the demand of a run whose agent and problem need these, one after the other."""
    amounts: dict[str, float] = {}
    for resources in given:
        for name, amount in resources.amounts().items() if resources is not None else ():
            amounts[name] = max(amount, amounts.get(name, 0.0))
    return tuple(sorted(amounts.items()))


def count_fitting(demand: Demand, totals: Mapping[str, float]) -> float:
    """Return how many runs with a demand a machine has room for; infinite without a demand."""
    return min(
        ((totals.get(name, 0.0) + 1e-9) // amount for name, amount in demand), default=float("inf")
    )


def describe_amounts(amounts: Mapping[str, float]) -> str:
    """Return amounts in words, such as `2 cpus, 1 gpus`."""
    texts = (f"{amount:.4g} {name}" for name, amount in amounts.items() if amount)
    return ", ".join(texts) or "nothing"

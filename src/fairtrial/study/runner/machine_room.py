"""The resources of this machine: what runs need of them, and what is free."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairtrial.core import Mistake
from fairtrial.study.model.resources import (
    Demand,
    WorkNeeds,
    count_fitting,
    describe_amounts,
    join_demands,
)
from fairtrial.study.model.study import Study


class MachineRoom:
    """Counts what runs under way take of this machine.

    totals: what it has, by name of the resource
    """

    def __init__(self, totals: Mapping[str, float]) -> None:
        self._free = dict(totals)

    def has_room(self, demand: Demand) -> bool:
        """Return whether a run with this demand may start now."""
        return count_fitting(demand, self._free) >= 1

    def take(self, demand: Demand) -> None:
        """Count a run that starts."""
        for name, amount in demand:
            self._free[name] -= amount

    def give(self, demand: Demand) -> None:
        """Count a run that has ended."""
        for name, amount in demand:
            self._free[name] += amount


def measure_machine() -> dict[str, float]:
    """Return what this machine has: CPUs that this process may use, memory, GPUs."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        cpus = os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpus": float(cpus), "gpus": float(_count_gpus()), "memory_gb": memory / 1024**3}


def _count_gpus() -> int:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([name for name in visible.split(",") if name.strip() not in ("", "-1")])
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def run_demand(study: Study, agent: str | None, problem: str) -> Demand:
    """Return what a run of an agent on a problem needs."""
    agent_binding, problem_binding = study.agents.get(agent or ""), study.problems.get(problem)
    return join_demands(
        agent_binding.resources if agent_binding is not None else None,
        problem_binding.resources if problem_binding is not None else None,
    )


def find_needs(study: Study) -> WorkNeeds:
    """Return what the runs of a study need, as far as the study itself says."""
    demands = {run_demand(study, agent, problem): None for agent, problem in _pairs(study)}
    output = None if study.output_dir is None else Path(study.output_dir).absolute()
    return WorkNeeds(
        tuple(demands) if any(demands) else (), study.environment, study.folder, output
    )


def _pairs(study: Study) -> Iterator[tuple[str, str]]:
    """Yield agents and problems that may run; conditions may choose among all that are bound."""
    for agent in study.agent_specs or study.agents:
        problems = study.problem_ids or study.problem_names or ("",)
        # The rows of a dataset need the same.
        for problem in problems if study.dataset is None else problems[:1]:
            yield agent, problem


def find_environment_mistakes(study: Study) -> Iterator[Mistake]:
    """Yield a mistake for each environment variable that the study names and that isn't set."""
    for index, name in enumerate(study.environment):
        if name not in os.environ:
            yield Mistake(("environment", index), f"the environment variable {name} is not set")


def find_room_mistakes(study: Study) -> Iterator[Mistake]:
    """Yield a mistake for each agent and problem that this machine can never run."""
    totals = measure_machine()
    for agent, problem in _pairs(study):
        demand = run_demand(study, agent, problem)
        if demand and count_fitting(demand, totals) < 1:
            yield Mistake(
                ("agents", agent, "resources"),
                f"a run on {problem or 'a problem'} needs {describe_amounts(dict(demand))}; this "
                f"machine has {describe_amounts(totals)}",
                "lower it, or run on a cluster: --executor ray --address ...",
            )

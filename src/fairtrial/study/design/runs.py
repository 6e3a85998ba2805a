"""Planned runs: agents and problems of each condition, their ids and seeds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fairtrial.core import Mistake, StudyError, canonical_json, dump_record
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.identity import run_id_maker, run_id_numbers, seed_maker
from fairtrial.study.model.runs import RunSpec, make_spec
from fairtrial.study.model.study import Study

AGENT_FACTORS = ("agent_id", "agent", "agent_spec")
PROBLEM_FACTORS = ("problem_id", "problem")
DEFAULT_AGENT = "default-agent"
DEFAULT_PROBLEM = "default-problem"
SUBJECT = "subject"
"""The name of the block whose levels are the subjects of repeated measures."""
MAX_RUNS = 10_000_000
"""The most runs in a plan; with many more, two runs would almost surely share an id."""
MOST_KEPT_PAIRS = 1_000
"""How many pairs of agent and problem under one condition are kept in memory."""
# Designs that don't repeat their own rows (`number_rows`), so that runs are replicated instead.
REPLICATED_BY_RUNS = (
    DesignKind.FULL_FACTORIAL,
    DesignKind.CONSTRAINED_FACTORIAL,
    DesignKind.RANDOMIZED_BLOCK,
    DesignKind.REPEATED_MEASURES,
    DesignKind.LATIN_SQUARE,
    DesignKind.CUSTOM_MATRIX,
)


def count_replicates(study: Study) -> int:
    """Return how often each agent runs on each problem under each condition."""
    by_design = study.design_spec.kind in REPLICATED_BY_RUNS
    return study.run_budget.replicates * (study.design_spec.replicates if by_design else 1)


def get_agents(study: Study, condition: Condition) -> tuple[str | None, ...]:
    """Return the agents that run under a condition; (None,) for a condition runner."""
    if study.condition_runner is not None:
        return (None,)
    assigned = _get_assigned(condition, AGENT_FACTORS)
    return assigned or study.agent_specs or tuple(study.agents) or (DEFAULT_AGENT,)


def get_problems(study: Study, condition: Condition) -> tuple[str | None, ...]:
    """Return the problems that are used under a condition; (None,) for a condition runner."""
    if study.condition_runner is not None:
        return (None,)
    assigned = _get_assigned(condition, PROBLEM_FACTORS)
    return assigned or study.problem_ids or study.problem_names or (DEFAULT_PROBLEM,)


def count_pairs(study: Study, factors: Mapping[str, Any]) -> int:
    """Return the number of pairs of agent and problem under a condition that assigns these."""
    if study.condition_runner is not None:
        return 1
    has_agent, has_problem = _assigns(factors, AGENT_FACTORS), _assigns(factors, PROBLEM_FACTORS)
    agents = 1 if has_agent else len(study.agent_specs or study.agents) or 1
    return agents * (1 if has_problem else len(study.problem_ids or study.problems) or 1)


def _assigns(factors: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Return whether any of the names is a factor, which then names one agent or problem."""
    for name in names:  # noqa: SIM110  # `any` takes three times as long, for each condition
        if name in factors:
            return True
    return False


def _get_assigned(condition: Condition, names: Sequence[str]) -> tuple[str, ...]:
    factors = condition.factor_assignments
    for name in names:
        if name in factors:
            return (str(factors[name]),)
    return ()


def count_runs(study: Study, conditions: Sequence[Condition]) -> int:
    """Return the number of runs in the plan, without generating them."""
    # `len` of a range fails beyond the largest size of a list.
    return sum(indexes.stop - indexes.start for _, indexes in plan_indexes(study, conditions))


def plan_runs(study: Study, conditions: Sequence[Condition]) -> Iterator[RunSpec]:
    """Yield the runs in plan order: conditions × replicates × agents × problems.

    The runs are generated lazily: a plan of a million runs takes no more memory than its
    conditions. Raises `StudyError` if two runs would be the same.
    """
    _refuse_duplicates(study, conditions)
    return _generate_runs(study, conditions)


def _generate_runs(study: Study, conditions: Sequence[Condition]) -> Iterator[RunSpec]:
    replicates = range(1, count_replicates(study) + 1)
    seed_policy = dump_record(study.seed_policy)
    for condition in conditions:
        if not condition.admissible:
            continue
        pairs = make_pairs(study, condition, seed_policy)
        for replicate in replicates:
            for pair in pairs:
                yield make_run_spec(study.study_id, condition, pair, replicate)


class AgentProblemPair(NamedTuple):
    """An agent and a problem under a condition, with functions for the ids and seeds of their runs.

    agent: the agent's name; None for a condition runner
    problem: the problem's name; None for a condition runner
    make_id: returns the id of a replicate's run
    make_seed: returns the seed of a replicate's run
    """

    agent: str | None
    problem: str | None
    make_id: Callable[[int], str]
    make_seed: Callable[[int], int]


class _PairList(Sequence[AgentProblemPair]):
    """The pairs of agent and problem under a condition, each made when it is asked for."""

    def __init__(self, study: Study, condition: Condition, policy: Mapping[str, Any]) -> None:
        self._ids = study.study_id, condition.condition_id
        self._policy = policy
        self._agents = get_agents(study, condition)
        self._problems = get_problems(study, condition)

    def __len__(self) -> int:
        return len(self._agents) * len(self._problems)

    def __getitem__(self, index: Any) -> Any:
        agent_index, problem_index = divmod(range(len(self))[index], len(self._problems))
        return self._make(self._agents[agent_index], self._problems[problem_index])

    def __iter__(self) -> Iterator[AgentProblemPair]:
        return itertools.starmap(self._make, itertools.product(self._agents, self._problems))

    def _make(self, agent: str | None, problem: str | None) -> AgentProblemPair:
        study_id, condition_id = self._ids
        return AgentProblemPair(
            agent,
            problem,
            run_id_maker(study_id, condition_id, agent, problem),
            seed_maker(self._policy, study_id, condition_id, f"{agent}:{problem}"),
        )


def make_pairs(
    study: Study, condition: Condition, policy: Mapping[str, Any]
) -> Sequence[AgentProblemPair]:
    """Return the pairs of agent and problem under a condition.

    Many pairs, as of a large dataset, are made one by one when they are asked for.

    policy: the fields of the study's `SeedPolicy`
    """
    pairs = _PairList(study, condition, policy)
    return pairs if len(pairs) > MOST_KEPT_PAIRS else list(pairs)


def make_run_spec(
    study_id: str, condition: Condition, pair: AgentProblemPair, replicate: int
) -> RunSpec:
    """Return the spec of one replicate of a pair under a condition."""
    run_id, seed = pair.make_id(replicate), pair.make_seed(replicate)
    return build_run_spec(study_id, condition, pair, replicate, run_id, seed)


def build_run_spec(
    study_id: str,
    condition: Condition,
    pair: AgentProblemPair,
    replicate: int,
    run_id: str,
    seed: int,
) -> RunSpec:
    """Return the spec of one replicate of a pair, whose id and seed are known."""
    agent, problem = pair.agent, pair.problem
    return make_spec(
        run_id,
        study_id,
        condition.condition_id,
        problem or "",
        replicate,
        seed,
        agent,
        problem,
        {
            "agent_id": agent,
            "problem_id": problem,
            "condition_fingerprint": condition.metadata.get("fingerprint"),
        },
    )


def _refuse_duplicates(study: Study, conditions: Sequence[Condition]) -> None:
    """Raise `StudyError` if an agent, a problem or a condition occurs twice."""
    repeated = list(find_repeated_names(study))
    if repeated:
        raise StudyError(repeated)
    seen: set[str] = set()
    if len({condition.condition_id for condition in conditions}) == len(conditions):
        return
    for condition in conditions:
        if condition.condition_id in seen:
            raise StudyError(
                Mistake(
                    (),
                    f"condition {condition.condition_id} "
                    f"({canonical_json(condition.factor_assignments)}) is planned twice",
                    "leave one of the two out",
                )
            )
        seen.add(condition.condition_id)


def find_repeated_names(study: Study) -> Iterator[Mistake]:
    """Yield a mistake for each agent and problem that is listed a second time."""
    for field, names in (("agent_specs", study.agent_specs), ("problem_ids", study.problem_ids)):
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name in seen:
                message = f"'{name}' is listed twice: its runs would share ids"
                yield Mistake((field, index), message)
            seen.add(name)


def refuse_collisions(
    study: Study, conditions: Sequence[Condition], runs: int | None = None
) -> None:
    """Raise `StudyError` if two different runs have the same id by chance.

    runs: how many runs are planned, if that is known

    Ids have 48 bits: the probability is about 1 in 560 for a million runs, and 1 in 6 for
    `MAX_RUNS`. Takes 8 bytes of memory for each run.
    """
    import numpy as np

    _refuse_duplicates(study, conditions)
    replicates = range(1, count_replicates(study) + 1)
    numbers = run_id_numbers(study.study_id, _run_names(study, conditions), replicates)
    ids = np.fromiter(
        numbers, dtype=np.uint64, count=count_runs(study, conditions) if runs is None else runs
    )
    ids.sort()
    repeated = ids[1:][ids[1:] == ids[:-1]]
    if not repeated.size:
        return
    pair = (run for run in plan_runs(study, conditions) if int(run.run_id[4:], 16) == repeated[0])
    specs = list(itertools.islice(pair, 2))
    shown = " and ".join(
        f"({run.condition_id}, replicate {run.replicate}, {run.agent_spec_ref}, {run.problem_id})"
        for run in specs
    )
    raise StudyError(
        Mistake(
            ("study_id",),
            f"two runs get the id {specs[0].run_id} by chance: {shown}",
            "change study_id in any way and plan again",
        )
    )


def _run_names(
    study: Study, conditions: Iterable[Condition]
) -> Iterator[tuple[str, Iterable[tuple[str | None, str | None]]]]:
    """Yield the id of each admissible condition, with its pairs of agent and problem."""
    for condition in conditions:
        if condition.admissible:
            names = itertools.product(get_agents(study, condition), get_problems(study, condition))
            yield condition.condition_id, names


def plan_indexes(
    study: Study, conditions: Sequence[Condition]
) -> Iterator[tuple[Condition, range]]:
    """Yield each admissible condition with the range of its runs' plan indexes."""
    start, replicates = 0, count_replicates(study)
    for condition in conditions:
        if condition.admissible:
            end = start + count_pairs(study, condition.factor_assignments) * replicates
            yield condition, range(start, end)
            start = end

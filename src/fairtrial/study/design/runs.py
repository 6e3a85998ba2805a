"""From conditions to runs: who meets what, in which order, with which id and seed."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fairtrial.core import Mistake, StudyError, canonical_json, dump
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.identity import hash_id, run_id_maker, seed_maker
from fairtrial.study.model.runs import RunSpec
from fairtrial.study.model.study import Study

AGENT_FACTORS = ("agent_id", "agent", "agent_spec")
PROBLEM_FACTORS = ("problem_id", "problem")
DEFAULT_AGENT = "default-agent"
DEFAULT_PROBLEM = "default-problem"
SUBJECT = "subject"
"""The name of the block whose levels are the subjects of repeated measures."""
MOST_RUNS = 10_000_000
"""Of many more runs than this two would surely share an id."""
# Designs that don't repeat their own rows (`number_rows`): their replicates are those of runs.
REPLICATED_BY_RUNS = (
    DesignKind.FULL_FACTORIAL,
    DesignKind.CONSTRAINED_FACTORIAL,
    DesignKind.RANDOMIZED_BLOCK,
    DesignKind.REPEATED_MEASURES,
    DesignKind.LATIN_SQUARE,
    DesignKind.CUSTOM_MATRIX,
)


def replicates_of(study: Study) -> int:
    """How often each agent meets each problem under each condition."""
    by_design = study.design_spec.kind in REPLICATED_BY_RUNS
    return study.run_budget.replicates * (study.design_spec.replicates if by_design else 1)


def agents_of(study: Study, condition: Condition) -> tuple[str | None, ...]:
    """The agents that a condition is tried with."""
    if study.condition_runner is not None:
        return (None,)
    named = _assigned(condition, AGENT_FACTORS)
    return named or study.agent_specs or tuple(study.agents) or (DEFAULT_AGENT,)


def problems_of(study: Study, condition: Condition) -> tuple[str | None, ...]:
    """The problems that a condition is tried on."""
    if study.condition_runner is not None:
        return (None,)
    named = _assigned(condition, PROBLEM_FACTORS)
    return named or study.problem_ids or tuple(study.problems) or (DEFAULT_PROBLEM,)


def _assigned(condition: Condition, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name in condition.factor_assignments:
            return (str(condition.factor_assignments[name]),)
    return ()


def count_runs(study: Study, conditions: Sequence[Condition]) -> int:
    """How many runs the plan has, without making them."""
    # Not by len(), which stops at what a list could hold.
    return sum(places.stop - places.start for _, places in _places(study, conditions))


def plan_runs(study: Study, conditions: Sequence[Condition]) -> Iterator[RunSpec]:
    """The runs, in plan order: conditions × replicates × agents × problems.

    Lazy: a plan of a million runs takes no more memory than its conditions.
    """
    _refuse_twins(study, conditions)
    return _runs(study, conditions)


def _runs(study: Study, conditions: Sequence[Condition]) -> Iterator[RunSpec]:
    replicates = range(1, replicates_of(study) + 1)
    policy = dump(study.seed_policy)
    for condition in conditions:
        if not condition.admissible:
            continue
        pairs = pairs_of(study, condition, policy)
        for replicate in replicates:
            for pair in pairs:
                yield spec_of(study.study_id, condition, pair, replicate)


class Pair(NamedTuple):
    """An agent and a problem under a condition, and how their runs get ids and seeds."""

    agent: str | None
    problem: str | None
    make_id: Callable[[int], str]
    make_seed: Callable[[int], int]


def pairs_of(study: Study, condition: Condition, policy: Mapping[str, Any]) -> list[Pair]:
    """Who meets what under a condition; `policy` holds the fields of the study's SeedPolicy."""
    study_id, condition_id = study.study_id, condition.condition_id
    return [
        Pair(
            agent,
            problem,
            run_id_maker(study_id, condition_id, agent, problem),
            seed_maker(policy, study_id, condition_id, f"{agent}:{problem}"),
        )
        for agent in agents_of(study, condition)
        for problem in problems_of(study, condition)
    ]


def spec_of(study_id: str, condition: Condition, pair: Pair, replicate: int) -> RunSpec:
    """One run: a pair under a condition, as one of its replicates."""
    agent, problem, make_id, make_seed = pair
    return RunSpec(
        run_id=make_id(replicate),
        study_id=study_id,
        condition_id=condition.condition_id,
        problem_id=problem or "",
        replicate=replicate,
        seed=make_seed(replicate),
        agent_spec_ref=agent,
        problem_spec_ref=problem,
        execution_metadata={
            "agent_id": agent,
            "problem_id": problem,
            "condition_fingerprint": condition.metadata.get("fingerprint"),
        },
    )


def _refuse_twins(study: Study, conditions: Sequence[Condition]) -> None:
    """Refuse a plan in which two runs are the same by what they are made of."""
    repeated = list(repeated_names(study))
    if repeated:
        raise StudyError(repeated)
    seen: set[str] = set()
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


def repeated_names(study: Study) -> Iterator[Mistake]:
    """A mistake for each agent and problem that is listed a second time."""
    for field, names in (("agent_specs", study.agent_specs), ("problem_ids", study.problem_ids)):
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name in seen:
                message = f"'{name}' is listed twice: its runs would share ids"
                yield Mistake((field, index), message)
            seen.add(name)


def refuse_collisions(study: Study, conditions: Sequence[Condition]) -> None:
    """Refuse a plan in which two different runs happen to hash to one id.

    Ids have 48 bits: among a million runs the odds are about 1 in 560, among `MOST_RUNS` 1 in 6.
    Costs 8 bytes a run.
    """
    import numpy as np

    _refuse_twins(study, conditions)
    numbers = _run_numbers(study, conditions)
    ids = np.fromiter(numbers, dtype=np.uint64, count=count_runs(study, conditions))
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


def _run_numbers(study: Study, conditions: Sequence[Condition]) -> Iterator[int]:
    """The runs' ids as numbers, in plan order, without the rest of what makes a run."""
    replicates = range(1, replicates_of(study) + 1)
    for condition in conditions:
        if not condition.admissible:
            continue
        makers = [
            run_id_maker(study.study_id, condition.condition_id, agent, problem)
            for agent in agents_of(study, condition)
            for problem in problems_of(study, condition)
        ]
        for replicate in replicates:
            for make in makers:
                yield int(make(replicate)[4:], 16)


def execution_order(study: Study, conditions: Sequence[Condition]) -> array[int]:
    """The order in which to run the plan: positions in it, shuffled by the study's seed.

    Replicates of one condition would otherwise sit side by side in time, and whatever drifts while
    the study runs would look like an effect. Where there are blocks, one block is finished before
    the next is begun, each in an order of its own. Repeated measures keep each subject's sequence.
    """
    rng = random.Random(hash_id("order", {"base_seed": study.seed_policy.base_seed}))
    if study.design_spec.kind == DesignKind.REPEATED_MEASURES:
        return _order_by_subject(study, conditions, rng)
    groups: dict[str, array[int]] = {}
    for condition, places in _places(study, conditions):
        block = canonical_json(condition.block_assignments)
        groups.setdefault(block, array("Q")).extend(places)
    order: array[int] = array("Q")
    for group in groups.values():
        rng.shuffle(group)
        order.extend(group)
    return order


def _order_by_subject(
    study: Study, conditions: Sequence[Condition], rng: random.Random
) -> array[int]:
    """One session after the other, shuffled; in each a subject meets its treatments in sequence.

    A subject is a block named so, or else a replicate. One with several replicates, agents or
    problems has a session for each. The sessions of one combination of other blocks are finished
    before those of the next are begun.
    """
    groups: dict[str, dict[tuple[str, int, int], list[tuple[int, int]]]] = {}
    for condition, places in _places(study, conditions):
        blocks = condition.block_assignments
        others = {name: level for name, level in blocks.items() if name != SUBJECT}
        sessions = groups.setdefault(canonical_json(others), {})
        subject = canonical_json(blocks.get(SUBJECT))
        turns = condition.metadata["within_subject_positions"]
        pairs = len(places) // replicates_of(study)
        for offset, place in enumerate(places):
            replicate, pair = divmod(offset, pairs)
            turn = turns[replicate % len(turns)]
            sessions.setdefault((subject, replicate, pair), []).append((turn, place))
    order: array[int] = array("Q")
    for sessions in groups.values():
        names = list(sessions)
        rng.shuffle(names)
        order.extend(place for name in names for _, place in sorted(sessions[name]))
    return order


def _places(study: Study, conditions: Sequence[Condition]) -> Iterator[tuple[Condition, range]]:
    """Each condition that runs, and where its runs stand in the plan."""
    start = 0
    for condition in conditions:
        if condition.admissible:
            pairs = len(agents_of(study, condition)) * len(problems_of(study, condition))
            end = start + pairs * replicates_of(study)
            yield condition, range(start, end)
            start = end

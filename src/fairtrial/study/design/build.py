"""From a study to its conditions: rows by the design, constraints judged, ids given."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairtrial.core import (
    Mistake,
    PluginError,
    StudyError,
    build,
    canonical_json,
    plugins,
    spell_count,
)
from fairtrial.study.design.constraints import Judge
from fairtrial.study.design.dependent_factors import dependence_mistakes
from fairtrial.study.design.rows import interleave
from fairtrial.study.model.conditions import Condition, DesignRow, DesignTable
from fairtrial.study.model.factors import Block, Constraint, DesignKind, DesignSpec, Factor
from fairtrial.study.model.identity import condition_id_of, fingerprint
from fairtrial.study.model.study import SeedPolicy, Study
from fairtrial.study.protocols import Design

Marks = dict[str, dict[str, dict[str, Any]]]


def build_design(
    study: Study, design_spec: DesignSpec | Mapping[str, Any] | None = None
) -> list[Condition]:
    """The study's conditions, in plan order: a function of the study and its seed alone.

    A design of more than `design_spec.max_conditions` conditions is refused before any is made.
    """
    if design_spec is not None:
        spec = design_spec if isinstance(design_spec, DesignSpec) else DesignSpec(**design_spec)
        study = replace(study, design_spec=spec)
    return conditions_of(study, design_table(study))


def materialize_conditions(
    factors: Sequence[Factor] | Study,
    blocks: Sequence[Block] | None = None,
    constraints: Sequence[Constraint] | None = None,
    *,
    seed: int | None = None,
    randomize: bool = False,
    counterbalance: bool = False,
) -> list[Condition]:
    """The full factorial of some factors and blocks, without the rest of a study.

    Of a whole study its factors, blocks and constraints count, and its seed where none is given.
    """
    if isinstance(factors, Study):
        study = factors
    else:
        study = Study(
            study_id="conditions",
            title="conditions",
            factors=tuple(factors),
            blocks=tuple(blocks or ()),
            constraints=tuple(constraints or ()),
        )
    spec = replace(
        study.design_spec,
        kind="full_factorial",
        options={},
        randomize=randomize,
        counterbalance=counterbalance,
    )
    policy = study.seed_policy if seed is None else SeedPolicy(base_seed=seed)
    return build_design(replace(study, design_spec=spec, seed_policy=policy))


def make_design(spec: DesignSpec, mistakes: list[Mistake] | None = None) -> Design | None:
    """The design that a spec names, its options checked.

    With `mistakes` what is wrong is appended there and None returned, else it is raised.
    """
    found: list[Mistake] = []
    design: Design | None = None
    try:
        kind = plugins.load("designs", str(spec.kind))
    except PluginError as error:
        found.extend(mistake.under(("design_spec", "kind")) for mistake in error.mistakes)
    else:
        design = build(kind, spec.options, ("design_spec", "options"), found)
    if found and mistakes is None:
        raise StudyError(found)
    if mistakes is not None:
        mistakes.extend(found)
    return None if found else design


def design_table(study: Study) -> DesignTable:
    """The design's rows, not yet made; refuses more than `max_conditions`."""
    design = make_design(study.design_spec)
    assert design is not None
    mistakes = list(dependence_mistakes(study))
    if mistakes:
        raise StudyError(mistakes)
    table = design.table(study)
    limit = study.design_spec.max_conditions
    if table.size > limit:
        # One more than the limit is also what designs say that stopped counting there.
        least = "at least " if table.size == limit + 1 else ""
        raise StudyError(
            Mistake(
                ("design_spec",),
                f"the design has {least}{spell_count(table.size)} conditions, "
                f"more than max_conditions ({limit:,})",
                "use fewer levels, a fraction or a sample, or raise design_spec.max_conditions",
            )
        )
    return table


def conditions_of(study: Study, table: DesignTable) -> list[Condition]:
    """The rows of a table as conditions: judged, with ids, in their final order."""
    spec = study.design_spec
    if spec.replicates > 1 and not table.settled and not isinstance(spec.kind, DesignKind):
        raise StudyError(
            Mistake(
                ("design_spec", "replicates"),
                f"{spec.kind} does not repeat its rows",
                "use run_budget.replicates",
            )
        )
    judge = Judge(study.constraints, study.folder)
    marks = _marks(study.factors)
    conditions = [_condition(row, judge, marks) for row in table.rows]
    _refuse_twins(conditions)
    if table.settled:
        return conditions
    if spec.counterbalance:
        conditions = interleave(conditions)
    if spec.randomize:
        random.Random(study.seed_policy.base_seed).shuffle(conditions)
    return conditions


def _condition(row: DesignRow, judge: Judge, marks: Marks) -> Condition:
    admissible, messages = judge(row.factors, row.blocks)
    hashed_factors, hashed_blocks = row.factors, row.blocks
    if row.written is not None:
        hashed_factors = {name: row.written[name] for name in row.factors}
        hashed_blocks = {name: row.written[name] for name in row.blocks}
    text = fingerprint(hashed_factors, hashed_blocks)
    return Condition(
        condition_id=condition_id_of(text, row.keyed),
        factor_assignments=dict(row.factors),
        block_assignments=dict(row.blocks),
        metadata={**row.metadata, "fingerprint": text, **_comparison(marks, row.factors)},
        admissible=admissible,
        constraint_messages=messages,
    )


def _marks(factors: Sequence[Factor]) -> Marks:
    """Which levels are baselines, where the study says so: reports compare against these."""
    marks: Marks = {}
    for factor in factors:
        for level in factor.levels:
            if not level.metadata.keys() & {"is_baseline", "role"}:
                continue
            role = level.metadata.get("role")
            is_baseline = bool(level.metadata.get("is_baseline", role == "baseline"))
            marks.setdefault(factor.name, {})[canonical_json(level.value)] = {
                "value": level.value,
                "level_name": level.name,
                "label": level.label,
                "role": str(role or ("baseline" if is_baseline else "treatment")),
                "is_baseline": is_baseline,
            }
    return marks


def _comparison(marks: Marks, assigned: Mapping[str, Any]) -> dict[str, Any]:
    """The marked levels that a condition has, and whether it is the baseline in all of them."""
    axes = {
        name: levels[canonical_json(assigned[name])]
        for name, levels in marks.items()
        if name in assigned and canonical_json(assigned[name]) in levels
    }
    if not axes:
        return {}
    baselines = [name for name, axis in axes.items() if axis["is_baseline"]]
    return {
        "condition_label": " | ".join(str(axis["label"]) for axis in axes.values()),
        "comparison_axes": axes,
        "comparison_baseline": {
            "is_baseline_condition": len(baselines) == len(axes),
            "axes": baselines,
        },
    }


def _refuse_twins(conditions: Sequence[Condition]) -> None:
    seen: dict[str, Condition] = {}
    for condition in conditions:
        twin = seen.setdefault(condition.condition_id, condition)
        if twin is condition:
            continue
        raise StudyError(
            Mistake(
                ("factors",),
                f"two conditions get the id {condition.condition_id}: "
                f"{canonical_json(twin.factor_assignments)} and "
                f"{canonical_json(condition.factor_assignments)}",
                "make them differ in a factor or a block",
            )
        )

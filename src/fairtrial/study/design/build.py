"""Build the conditions of a study: generate the design's rows, check constraints, assign ids."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from fairtrial.core import (
    Mistake,
    PluginError,
    StudyError,
    build_record,
    canonical_json,
    plugins,
)
from fairtrial.study.design.constraints import ConstraintChecker
from fairtrial.study.design.dependent_factors import find_dependency_mistakes
from fairtrial.study.design.rows import interleave
from fairtrial.study.model.conditions import Condition, ConditionList, DesignRow, DesignTable
from fairtrial.study.model.factors import Block, Constraint, DesignKind, DesignSpec, Factor
from fairtrial.study.model.identity import FingerprintMaker, fingerprint_maker, hash_condition
from fairtrial.study.model.large_counts import format_large_count
from fairtrial.study.model.runs import quick_maker
from fairtrial.study.model.study import SeedPolicy, Study
from fairtrial.study.protocols import Design

ComparisonLevels = dict[str, dict[str, dict[str, Any]]]
"""Metadata of levels that are marked as baseline or treatment, by factor and JSON of the value."""


def build_design(
    study: Study, design_spec: DesignSpec | Mapping[str, Any] | None = None
) -> list[Condition]:
    """Return the study's conditions in plan order, a function of the study and its seed alone.

    design_spec: a design in place of the study's own

    Raises `StudyError` if the study doesn't fit the design or has more than
    `design_spec.max_conditions` conditions.
    """
    if design_spec is not None:
        spec = design_spec if isinstance(design_spec, DesignSpec) else DesignSpec(**design_spec)
        study = replace(study, design_spec=spec)
    return make_conditions(study, design_table(study))


def materialize_conditions(
    factors: Sequence[Factor] | Study,
    blocks: Sequence[Block] | None = None,
    constraints: Sequence[Constraint] | None = None,
    *,
    seed: int | None = None,
    randomize: bool = False,
    counterbalance: bool = False,
) -> list[Condition]:
    """Return the conditions of the full factorial of factors and blocks.

    factors: the factors; or a study, of which factors, blocks, constraints and seed are used
    seed: the seed of a random order; for a study by default its own
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
    """Return the design that a spec names, with its options checked.

    Mistakes are appended to `mistakes`, and None is returned; without a list they are raised.
    """
    new_mistakes: list[Mistake] = []
    design: Design | None = None
    try:
        design_class = plugins.load("designs", str(spec.kind))
    except PluginError as error:
        new_mistakes.extend(mistake.under(("design_spec", "kind")) for mistake in error.mistakes)
    else:
        design = build_record(design_class, spec.options, ("design_spec", "options"), new_mistakes)
    if new_mistakes and mistakes is None:
        raise StudyError(new_mistakes)
    if mistakes is not None:
        mistakes.extend(new_mistakes)
    return None if new_mistakes else design


def design_table(study: Study) -> DesignTable:
    """Return the design's table, with lazy rows; raises `StudyError` above `max_conditions`."""
    design = make_design(study.design_spec)
    assert design is not None
    mistakes = list(find_dependency_mistakes(study))
    if mistakes:
        raise StudyError(mistakes)
    table = design.table(study)
    limit = study.design_spec.max_conditions
    if table.size > limit:
        # Designs that stop counting at the limit return one more than it as their size.
        prefix = "at least " if table.size == limit + 1 else ""
        raise StudyError(
            Mistake(
                ("design_spec",),
                f"the design has {prefix}{format_large_count(table.size)} conditions, "
                f"more than max_conditions ({limit:,})",
                "use fewer levels, a fraction or a sample, or raise design_spec.max_conditions",
            )
        )
    return table


def make_conditions(study: Study, table: DesignTable) -> list[Condition]:
    """Return the rows of a table as conditions: with constraints checked, ids, in final order."""
    spec = study.design_spec
    if spec.replicates > 1 and not table.settled and not isinstance(spec.kind, DesignKind):
        raise StudyError(
            Mistake(
                ("design_spec", "replicates"),
                f"{spec.kind} does not repeat its rows",
                "use run_budget.replicates",
            )
        )
    check = ConstraintChecker(study.constraints, study.folder)
    comparison_levels = _find_comparison_levels(study.factors)
    text_of = fingerprint_maker()
    with paused_gc():
        conditions = [
            _make_condition(row, admissible, messages, comparison_levels, text_of)
            for row, admissible, messages in check.check_rows(table.rows)
        ]
    _refuse_equal_ids(conditions)
    if table.settled:
        return ConditionList(conditions)
    if spec.counterbalance:
        conditions = interleave(conditions)
    if spec.randomize:
        random.Random(study.seed_policy.base_seed).shuffle(conditions)
    return ConditionList(conditions)


@contextmanager
def paused_gc() -> Iterator[None]:
    """Pause garbage collection: it would look at all conditions so far again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_new_condition = quick_maker(Condition)


def _make_condition(
    row: DesignRow,
    admissible: bool,
    messages: tuple[str, ...],
    comparison_levels: ComparisonLevels,
    text_of: FingerprintMaker,
) -> Condition:
    hashed_factors, hashed_blocks = row.factors, row.blocks
    if row.raw_cells is not None:
        hashed_factors = {name: row.raw_cells[name] for name in row.factors}
        hashed_blocks = {name: row.raw_cells[name] for name in row.blocks}
    text = text_of(hashed_factors, hashed_blocks)
    metadata = {**row.metadata, "fingerprint": text}
    if comparison_levels:
        metadata |= _describe_comparison(comparison_levels, row.factors)
    condition: Condition = _new_condition(
        hash_condition(text, row.id_metadata),
        dict(row.factors),
        dict(row.blocks),
        metadata,
        admissible,
        messages,
    )
    return condition


def _find_comparison_levels(factors: Sequence[Factor]) -> ComparisonLevels:
    """Return the levels that the study marks as baseline or treatment."""
    comparison_levels: ComparisonLevels = {}
    for factor in factors:
        for level in factor.levels:
            if not level.metadata.keys() & {"is_baseline", "role"}:
                continue
            role = level.metadata.get("role")
            is_baseline = bool(level.metadata.get("is_baseline", role == "baseline"))
            comparison_levels.setdefault(factor.name, {})[canonical_json(level.value)] = {
                "value": level.value,
                "level_name": level.name,
                "label": level.label,
                "role": str(role or ("baseline" if is_baseline else "treatment")),
                "is_baseline": is_baseline,
            }
    return comparison_levels


def _describe_comparison(
    comparison_levels: ComparisonLevels, assigned: Mapping[str, Any]
) -> dict[str, Any]:
    """Return metadata on a condition's marked levels, and whether all of them are baselines."""
    axes = {
        name: levels[canonical_json(assigned[name])]
        for name, levels in comparison_levels.items()
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


def _refuse_equal_ids(conditions: Sequence[Condition]) -> None:
    seen: dict[str, Condition] = {}
    for condition in conditions:
        first = seen.setdefault(condition.condition_id, condition)
        if first is condition:
            continue
        raise StudyError(
            Mistake(
                ("factors",),
                f"two conditions get the id {condition.condition_id}: "
                f"{canonical_json(first.factor_assignments)} and "
                f"{canonical_json(condition.factor_assignments)}",
                "make them differ in a factor or a block",
            )
        )

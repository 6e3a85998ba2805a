"""Generate design tables without a study: from factors to rows and a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairtrial.core import (
    FieldPath,
    Mistake,
    PluginError,
    StudyError,
    canonical,
    describe_value,
    did_you_mean,
    fields,
    plugins,
)
from fairtrial.study.design.association import label_values
from fairtrial.study.design.balance import DesignBalance, design_balance, design_balance_report
from fairtrial.study.design.build import design_table, make_design
from fairtrial.study.design.rows import Assignment, add_center_points, is_number, shuffle_rows
from fairtrial.study.design.runs import REPLICATED_BY_RUNS
from fairtrial.study.model.conditions import DesignTable
from fairtrial.study.model.factors import Block, DesignKind, DesignSpec, Factor, Level
from fairtrial.study.model.large_counts import format_large_count
from fairtrial.study.model.study import SeedPolicy, Study

CODED = (
    DesignKind.FRACTIONAL_FACTORIAL_2LEVEL,
    DesignKind.PLACKETT_BURMAN,
    DesignKind.CENTRAL_COMPOSITE,
    DesignKind.BOX_BEHNKEN,
)
"""Designs whose factors may be given without levels, which are then -1 and +1."""
ORDERED = (DesignKind.RANDOMIZED_BLOCK, DesignKind.REPEATED_MEASURES)
"""Designs that have an order of its own for each replicate."""
SURFACES = (DesignKind.CENTRAL_COMPOSITE, DesignKind.BOX_BEHNKEN)
"""Designs that are uneven by construction, with more runs at the center."""
UNEVEN_RATIO = 2.0
NO_ASSOCIATION = 0.005
STRONG_ASSOCIATION = 0.7


def generate_doe(
    *,
    kind: str,
    factors: Mapping[str, Any],
    n_samples: int | None = None,
    seed: int = 0,
    center_points: int = 0,
    replicates: int = 1,
    randomize: bool = True,
    block_randomization_key: str | None = None,
    backend: str = "stdlib",
    options: Mapping[str, Any] | None = None,
    max_conditions: int = 100_000,
) -> dict[str, Any]:
    """Return a design's table and a description of it, without a study.

    kind: a design, by name or alias
    factors: a list of levels for each factor; [low, high] for designs that sample; None or an empty
        list for levels -1 and +1, in designs of two levels
    n_samples: the number of rows, for designs that sample or select rows
    seed: the seed of random numbers
    center_points: the number of rows at the center of all numeric factors, added at the end
    replicates: how often the rows are repeated
    randomize: whether the rows are shuffled; Latin squares, matrix files and sequences keep their
        own order
    block_randomization_key: a factor; rows are shuffled only among those with the same value of it
    backend: the source of random numbers of a Latin hypercube
    options: options of the design itself
    max_conditions: a table with more rows than this is refused before they are generated

    Returns a mapping with `design` (the rows), `summary`, `interpretation`, `warnings` and `facts`
    (properties of the design: aliases, efficiency, ...). The rows are those of a study with the
    same factors and seed; replicates are rows here for every design, and for randomized blocks and
    repeated measures each replicate has an order of its own. Raises `StudyError` with all mistakes.
    """
    settings: dict[str, Any] = {
        "kind": kind,
        "n_samples": n_samples,
        "center_points": center_points,
        "replicates": replicates,
        "randomize": randomize,
        "block_randomization_key": block_randomization_key,
        "options": {} if options is None else options,
        "max_conditions": max_conditions,
    }
    study = _make_study(factors, seed, backend, settings)
    try:
        table = design_table(study)
        rows = _make_rows(study, table)
    except StudyError as error:
        names = [factor.name for factor in study.factors]
        raise StudyError([_relocate(mistake, names) for mistake in error.mistakes]) from None
    return _describe(study, rows, backend, table.facts)


def _make_study(factors: Any, seed: int, backend: str, settings: Mapping[str, Any]) -> Study:
    """Return a temporary study with the design; raises one `StudyError` for the arguments."""
    mistakes: list[Mistake] = []
    spec, policy = DesignSpec(), SeedPolicy()
    try:
        spec = DesignSpec(**settings)
    except StudyError as error:
        mistakes.extend(error.mistakes)
    else:
        spec = _with_backend(spec, backend, mistakes)
        make_design(spec, mistakes)
    try:
        policy = SeedPolicy(base_seed=seed)
    except StudyError as error:
        mistakes.extend(replace(mistake, path=("seed",)) for mistake in error.mistakes)
    study_factors = _make_factors(factors, spec.kind, mistakes)
    names = [str(name) for name in factors] if isinstance(factors, Mapping) else []
    within = settings["block_randomization_key"]
    if isinstance(within, str) and names and within not in names:
        mistakes.append(
            Mistake(
                ("block_randomization_key",),
                f"'{within}' is not a factor of the design",
                did_you_mean(within, names),
            )
        )
    if mistakes:
        raise StudyError([_relocate(mistake, names) for mistake in mistakes])
    study = Study("doe", "doe", factors=study_factors, design_spec=spec, seed_policy=policy)
    if spec.kind in ORDERED and 1 < spec.replicates <= spec.max_conditions:
        replicates = Block("replicate", tuple(range(1, spec.replicates + 1)))
        study = replace(study, blocks=(replicates,), design_spec=replace(spec, replicates=1))
    return study


def _with_backend(spec: DesignSpec, backend: str, mistakes: list[Mistake]) -> DesignSpec:
    if backend == "stdlib":
        return spec
    try:
        options = fields.field_types(plugins.load("designs", str(spec.kind)))
    except PluginError:
        return spec  # `make_design` reports it
    if "backend" in options:
        return replace(spec, options={"backend": backend, **spec.options})
    mistakes.append(
        Mistake(("backend",), f"{spec.kind} has no back end '{backend}'", "leave it out")
    )
    return spec


def _make_factors(
    factors: Any, kind: DesignKind | str, mistakes: list[Mistake]
) -> tuple[Factor, ...]:
    if not isinstance(factors, Mapping) or not factors:
        expected = "expected a mapping of names to levels"
        shown = describe_value(factors) if not isinstance(factors, Mapping) else "an empty one"
        mistakes.append(Mistake(("factors",), f"{expected}, got {shown}"))
        return ()
    result = []
    for name, levels in factors.items():
        try:
            result.append(_make_factor(str(name), levels, kind))
        except StudyError as error:
            path: FieldPath = ("factors", str(name))
            mistakes.extend(replace(mistake, path=path) for mistake in error.mistakes)
    return tuple(result)


def _make_factor(name: str, levels: Any, kind: DesignKind | str) -> Factor:
    is_list = isinstance(levels, Sequence) and not isinstance(levels, (str, bytes))
    is_empty = levels is None or (is_list and not levels)
    if is_empty and kind in CODED:
        return Factor(name, levels=_make_levels((-1.0, 1.0)))
    if is_empty and kind == DesignKind.CUSTOM_MATRIX:
        # Without levels cells are not converted; an empty cell is an empty text.
        return Factor(name, default="")
    if is_empty or not is_list:
        shown = "none" if is_empty else describe_value(levels)
        raise StudyError(Mistake((), f"expected a list of levels, got {shown}"))
    return Factor(name, levels=_make_levels(levels))


def _make_levels(values: Sequence[Any]) -> tuple[Level, ...]:
    for _, second in canonical.find_equal_values(values):
        raise StudyError(Mistake((), f"lists {describe_value(values[second])} twice"))
    names = label_values(values)
    return tuple(Level(name, value) for name, value in zip(names, values, strict=True))


def _relocate(mistake: Mistake, names: Sequence[str]) -> Mistake:
    """Return the mistake with a path to an argument of `generate_doe`."""
    path = mistake.path[1:] if mistake.path[:1] == ("design_spec",) else mistake.path
    if len(path) > 1 and path[0] == "factors" and isinstance(path[1], int):
        path = ("factors", names[path[1]])
    if path[:2] == ("options", "backend"):
        path = ("backend",)
    return replace(mistake, path=path, hint=mistake.hint.replace("design_spec.", ""))


def _make_rows(study: Study, table: DesignTable) -> list[Assignment]:
    spec = study.design_spec
    # Designs that number their rows have repeated them already.
    is_pending = not table.settled or spec.kind in REPLICATED_BY_RUNS
    repeats, centers = (spec.replicates, spec.center_points) if is_pending else (1, 0)
    count = table.size * repeats + centers
    if count > spec.max_conditions:
        raise StudyError(
            Mistake(
                ("replicates",),
                f"the table has {format_large_count(count)} rows, "
                f"more than max_conditions ({spec.max_conditions:,})",
                "repeat it less often, or raise max_conditions",
            )
        )
    design_rows = [row.factors for row in table.rows]
    rows = add_center_points([dict(row) for _ in range(repeats) for row in design_rows], centers)
    if spec.randomize and not table.settled:
        rows = shuffle_rows(rows, study.seed_policy.base_seed, spec.block_randomization_key)
    return rows


def _describe(
    study: Study, rows: list[Assignment], backend: str, facts: Mapping[str, Any]
) -> dict[str, Any]:
    names = [factor.name for factor in study.factors]
    kind = str(study.design_spec.kind)
    balance = design_balance(rows, {f.name: f.iter_values() for f in study.factors if f.levels})
    ranges = {}
    for name in names:
        values = [row[name] for row in rows]
        if values and all(is_number(value) for value in values):
            ranges[name] = [float(min(values)), float(max(values))]
    size = f"{_format_count(len(rows), 'run')} over {_format_count(len(names), 'factor')}"
    return {
        "design": rows,
        "summary": {
            "n_runs": len(rows),
            "factors": names,
            "ranges": ranges,
            "design_kind": kind,
            "backend": backend,
            "balance": design_balance_report(rows),
        },
        "interpretation": f"{kind}: {size}. {_describe_balance(balance)}",
        "warnings": _find_warnings(balance, study.design_spec.kind),
        "facts": canonical.to_plain(facts),
    }


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _describe_balance(balance: DesignBalance) -> str:
    """Return how even the table is, in a sentence or two."""
    with_levels = [factor for factor in balance.factors if factor.counts]
    uneven = [factor.name for factor in with_levels if not factor.is_even]
    text = "All levels occur equally often" if with_levels else "Values are spread over ranges"
    if uneven:
        text = f"Levels occur unequally often in {', '.join(uneven)}"
    if balance.is_even and balance.pairs:
        return f"{text}, and so do all pairs of levels."
    if not balance.pairs:
        return f"{text}."
    worst = max(balance.pairs, key=lambda pair: pair.association)
    if worst.association < NO_ASSOCIATION:
        return f"{text}. No two factors go together."
    return (
        f"{text}. The strongest association of two factors is {worst.association:.2f} "
        f"({worst.first} and {worst.second})."
    )


def _find_warnings(balance: DesignBalance, kind: DesignKind | str) -> list[str]:
    warnings = [
        f"{factor.name}: its commonest level occurs {factor.max_to_min_ratio:.2g} times as often "
        "as its rarest"
        for factor in balance.factors
        if factor.max_to_min_ratio > UNEVEN_RATIO and kind not in SURFACES
    ]
    for pair in balance.pairs:
        both = f"{pair.first} and {pair.second}"
        if pair.is_confounded:
            warnings.append(f"{both} change together: their effects can't be told apart")
        elif pair.association >= STRONG_ASSOCIATION:
            measure = pair.measure.replace("cramers_v", "Cramér's V").replace("_", " ")
            warnings.append(f"{both} go together: {measure} {pair.association:.2f}")
    if balance.pairs_left_out:
        warnings.append(f"{balance.pairs_left_out} pairs of factors were not looked at: too many")
    return warnings

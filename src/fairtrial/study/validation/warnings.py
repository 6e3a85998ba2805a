"""Warnings about terms that the analysis doesn't support, and settings that have no effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.core import FieldPath, Mistake, did_you_mean
from fairtrial.study.design.runs import REPLICATED_BY_RUNS
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.hypotheses import AGGREGATIONS, COMPARISON_POLICIES, SOURCE_TABLES
from fairtrial.study.model.study import Study
from fairtrial.study.stats.multiplicity import is_policy
from fairtrial.study.stats.test_names import (
    MISSING_DATA_POLICIES,
    find_test,
    missing_data_policy,
    suggest_test,
)

SAMPLED = (
    DesignKind.LATIN_HYPERCUBE,
    DesignKind.SOBOL,
    DesignKind.HALTON,
    DesignKind.D_OPTIMAL,
)
"""Designs whose number of rows is `n_samples`."""
_UNKNOWN_TERM = "'{}' is not a term that fairtrial knows"


def find_unknown_terms(study: Study) -> Iterator[Mistake]:
    """Yield a warning for each term in outcomes and plans that the analysis doesn't support."""
    for i, outcome in enumerate(study.outcomes):
        at = ("outcomes", i)
        if outcome.source_table.strip().lower() not in SOURCE_TABLES:
            yield _warn_of_term((*at, "source_table"), outcome.source_table, SOURCE_TABLES)
        if outcome.aggregation.strip().lower() not in AGGREGATIONS:
            yield _warn_of_term((*at, "aggregation"), outcome.aggregation, AGGREGATIONS)
        policy = outcome.missing_data_policy
        if missing_data_policy(policy) is None:
            yield _warn_of_term((*at, "missing_data_policy"), policy, MISSING_DATA_POLICIES)
    for i, plan in enumerate(study.analysis_plans):
        at = ("analysis_plans", i)
        for j, test in enumerate(plan.tests):
            if find_test(test) is None:
                yield Mistake((*at, "tests", j), _UNKNOWN_TERM.format(test), suggest_test(test))
        policy = plan.multiple_comparison_policy
        if not is_policy(policy):
            yield _warn_of_term((*at, "multiple_comparison_policy"), policy, COMPARISON_POLICIES)


def find_unused_settings(study: Study) -> Iterator[Mistake]:
    """Yield a warning for each field of the design spec that the design doesn't use."""
    spec = study.design_spec
    if not isinstance(spec.kind, DesignKind):
        return
    has_own_rows = spec.kind not in REPLICATED_BY_RUNS
    used = {
        "n_samples": spec.kind in SAMPLED,
        "center_points": has_own_rows,
        "matrix_path": spec.kind is DesignKind.CUSTOM_MATRIX,
        "block_randomization_key": has_own_rows and spec.randomize,
    }
    for name, is_used in used.items():
        if getattr(spec, name) and not is_used:
            without = " without randomize" if name == "block_randomization_key" else ""
            yield Mistake(("design_spec", name), f"a {spec.kind} design{without} has no use for it")


def _warn_of_term(path: FieldPath, term: str, known: Sequence[str]) -> Mistake:
    return Mistake(path, _UNKNOWN_TERM.format(term), did_you_mean(term, known))

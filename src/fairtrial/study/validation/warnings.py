"""Words and settings that can be read, and are likely meant otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.core import Mistake, Place, did_you_mean
from fairtrial.study.design.runs import REPLICATED_BY_RUNS
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.hypotheses import AGGREGATIONS, COMPARISON_POLICIES, SOURCE_TABLES
from fairtrial.study.model.study import Study
from fairtrial.study.stats.multiplicity import is_policy
from fairtrial.study.stats.test_names import (
    MISSING_DATA_POLICIES,
    find_test,
    hint_at_test,
    missing_data_policy,
)

SAMPLED = (
    DesignKind.LATIN_HYPERCUBE,
    DesignKind.SOBOL,
    DesignKind.HALTON,
    DesignKind.D_OPTIMAL,
)
"""Designs of as many rows as they are asked for."""
_UNHEARD_OF = "'{}' is not a word that fairtrial knows"


def word_doubts(study: Study) -> Iterator[Mistake]:
    """A remark for each word that the analysis will read and doesn't know."""
    for i, outcome in enumerate(study.outcomes):
        at = ("outcomes", i)
        if outcome.source_table.strip().lower() not in SOURCE_TABLES:
            yield _unheard_of((*at, "source_table"), outcome.source_table, SOURCE_TABLES)
        if outcome.aggregation.strip().lower() not in AGGREGATIONS:
            yield _unheard_of((*at, "aggregation"), outcome.aggregation, AGGREGATIONS)
        policy = outcome.missing_data_policy
        if missing_data_policy(policy) is None:
            yield _unheard_of((*at, "missing_data_policy"), policy, MISSING_DATA_POLICIES)
    for i, plan in enumerate(study.analysis_plans):
        at = ("analysis_plans", i)
        for j, test in enumerate(plan.tests):
            if find_test(test) is None:
                yield Mistake((*at, "tests", j), _UNHEARD_OF.format(test), hint_at_test(test))
        policy = plan.multiple_comparison_policy
        if not is_policy(policy):
            yield _unheard_of((*at, "multiple_comparison_policy"), policy, COMPARISON_POLICIES)


def setting_doubts(study: Study) -> Iterator[Mistake]:
    """A remark for each setting of the design that a design of this kind has no use for."""
    spec = study.design_spec
    if not isinstance(spec.kind, DesignKind):
        return
    has_own_rows = spec.kind not in REPLICATED_BY_RUNS
    useful = {
        "n_samples": spec.kind in SAMPLED,
        "center_points": has_own_rows,
        "matrix_path": spec.kind is DesignKind.CUSTOM_MATRIX,
        "block_randomization_key": has_own_rows and spec.randomize,
    }
    for name, is_used in useful.items():
        if getattr(spec, name) and not is_used:
            without = " without randomize" if name == "block_randomization_key" else ""
            yield Mistake(("design_spec", name), f"a {spec.kind} design{without} has no use for it")


def _unheard_of(path: Place, word: str, known: Sequence[str]) -> Mistake:
    return Mistake(path, _UNHEARD_OF.format(word), did_you_mean(word, known))

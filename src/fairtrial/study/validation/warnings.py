"""Warnings: unsupported terms, settings without effect, claims without a correction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.core import FieldPath, Mistake, did_you_mean
from fairtrial.study.design.runs import REPLICATED_BY_RUNS
from fairtrial.study.hypotheses.planned_tests import select_outcomes
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.hypotheses import (
    AGGREGATIONS,
    COMPARISON_POLICIES,
    SOURCE_TABLES,
    AnalysisPlan,
    HypothesisKind,
)
from fairtrial.study.model.study import Study
from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.stats.multiplicity import is_policy, policy_name
from fairtrial.study.stats.named_tests import (
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


def find_uncorrected_claims(study: Study) -> Iterator[Mistake]:
    """Yield a warning for each plan whose claims are not corrected for their number.

    Plans with different corrections control their errors separately, which is a warning, too.
    """
    policies = [policy_name(plan.multiple_comparison_policy) for plan in study.analysis_plans]
    corrected = sorted({policy for policy in policies if policy != "none" and is_policy(policy)})
    claims = [_count_claims(study, plan) for plan in study.analysis_plans]
    uncorrected = sum(
        count for count, policy in zip(claims, policies, strict=True) if policy == "none"
    )
    for i, (count, policy) in enumerate(zip(claims, policies, strict=True)):
        at = ("analysis_plans", i, "multiple_comparison_policy")
        if policy == "none" and uncorrected > 1 and count:
            error = 1 - (1 - ALPHA) ** uncorrected
            yield Mistake(
                at,
                f"{uncorrected} claims are tested without a correction: if none holds, the chance "
                f"that some is supported is up to {error:.0%}",
                "holm, the default, keeps it at 5%",
            )
    if len(corrected) > 1:
        index = policies.index(corrected[1])
        yield Mistake(
            ("analysis_plans", index, "multiple_comparison_policy"),
            f"plans use different corrections ({', '.join(corrected)}): each keeps its own error "
            "rate, not that of the study",
            "one policy for all plans does",
        )


def _count_claims(study: Study, plan: AnalysisPlan) -> int:
    """Return the number of claims that a plan decides: one for each hypothesis and outcome."""
    claims = [
        claim
        for claim in study.hypotheses
        if claim.hypothesis_id in plan.hypothesis_ids
        and claim.kind not in (HypothesisKind.EXPLORATORY, HypothesisKind.MEDIATION)
    ]
    return sum(len(select_outcomes(study, claim, plan)) for claim in claims)


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


def find_row_warnings(study: Study) -> Iterator[Mistake]:
    """Yield a warning for each remarkable thing about the rows of a dataset, such as copies."""
    for text in study.dataset.table.warnings if study.dataset is not None else ():
        yield Mistake(("problems",), text)

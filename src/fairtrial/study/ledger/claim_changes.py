"""The claims of a study and their tests as plain data, and how two studies differ in them.

Wording (labels, statements, notes), the order of lists and synonyms of tests don't change a claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from fairtrial.core import dump_record
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS
from fairtrial.study.ledger.fingerprint import differences
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis, OutcomeSpec
from fairtrial.study.model.study import Study
from fairtrial.study.stats.multiplicity import policy_name
from fairtrial.study.stats.named_tests import find_test, missing_data_policy

SECTIONS = ("hypotheses", "outcomes", "analysis_plans")
WORDING_FIELDS = ("label", "statement")
FAMILY_FIELD = "hypothesis_ids"
POLICY = "multiple_comparison_policy"
MONOTONE_POLICIES = ("holm", "bonferroni")
"""The policies under which one more test in a family never lowers the p values of the others."""
STRICTNESS = ("none", "bh", "holm", "bonferroni")
"""The policies in the order of their adjusted p values, the smallest first."""
Claims = Mapping[str, Mapping[str, Any]]
ClaimRole = Literal["confirmatory", "exploratory", "unknown"]
"""Confirmatory: stated before the first result. Exploratory: not so. Unknown: not recorded."""

ClaimKey = tuple[str, str | None]
"""The ids of a hypothesis and of the analysis plan that tests it."""
Departure = Literal["added", "changed", "family"]
"""The claim was added or changed, or others in its plan were, which share its error rate."""


def collect_claims(study: Study) -> Claims:
    """Return everything that decides what is tested and how: hypotheses, outcomes and plans."""
    return {
        "hypotheses": {
            claim.hypothesis_id: _hypothesis_claim(study, claim) for claim in study.hypotheses
        },
        "outcomes": {outcome.name: _outcome_claim(outcome) for outcome in study.outcomes},
        "analysis_plans": {
            plan.analysis_plan_id: _plan_claim(plan) for plan in study.analysis_plans
        },
    }


def _hypothesis_claim(study: Study, claim: Hypothesis) -> dict[str, Any]:
    data = _without(dump_record(claim), "hypothesis_id", "label", "statement", "notes")
    data["dependent_vars"] = sorted(claim.dependent_vars)
    data["mediators"] = [mediator.name for mediator in claim.mediators]
    if claim.contrast is not None:
        data["contrast"] = _without(data["contrast"], "label")
    names = [moderator.name for moderator in claim.moderators]
    # A contrast names its two levels, so that further levels of the factor don't change it.
    if claim.contrast is None or len(claim.independent_vars) > 1:
        names = [*claim.independent_vars, *names]
    data["levels"] = {name: _levels(study, name) for name in names}
    return data


def _levels(study: Study, name: str) -> list[str]:
    """Return the levels that are compared if no contrast names two, the baseline first."""
    for factor in study.factors:
        if factor.name == name:
            baselines = [level.name for level in factor.levels if level.metadata.get("is_baseline")]
            return list(dict.fromkeys([*baselines, *(level.name for level in factor.levels)]))
    for block in study.blocks:
        if name in (block.name, f"block_{block.name}"):
            return [str(level) for level in block.levels]
    if name in AGENT_FACTORS:
        return list(study.agent_specs or study.agents)
    return list(study.problem_ids or study.problems) if name in PROBLEM_FACTORS else []


def _outcome_claim(outcome: OutcomeSpec) -> dict[str, Any]:
    data = _without(dump_record(outcome), "name", "description")
    for name in ("source_table", "aggregation", "expected_type"):
        data[name] = data[name].strip().lower()
    policy = outcome.missing_data_policy
    return {**data, "missing_data_policy": missing_data_policy(policy) or policy}


def _plan_claim(plan: AnalysisPlan) -> dict[str, Any]:
    data = _without(dump_record(plan), "analysis_plan_id", "plots", "export_tables", "notes")
    for name in (FAMILY_FIELD, "outcomes", "covariates", "random_effects"):
        data[name] = sorted(dict.fromkeys(data[name]))
    tests = [(name, find_test(name)) for name in plan.tests]
    names = [name if test is None else test.name for name, test in tests]
    policy = policy_name(plan.multiple_comparison_policy)
    return {**data, "tests": list(dict.fromkeys(names)), POLICY: policy}


def _without(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in names}


def describe_claim_changes(old: Study, new: Study) -> list[str]:
    """Return how claims changed, one line each: ``hypotheses[h1].direction: "greater" -> ...``"""
    before, after = collect_claims(old), collect_claims(new)
    return [*_section_changes(before, after), *_rewordings(old, new)]


def _section_changes(before: Claims, after: Claims) -> Iterator[str]:
    for section in SECTIONS:
        old, new = before[section], after[section]
        for name in dict.fromkeys([*old, *new]):
            path = f"{section}[{name}]"
            if name not in old or name not in new:
                yield f"{path}: {'added' if name in new else 'removed'}"
            else:
                yield from (f"{path}.{line}" for line in differences(old[name], new[name]))


def _rewordings(old: Study, new: Study) -> Iterator[str]:
    old_claims = {claim.hypothesis_id: claim for claim in old.hypotheses}
    for claim in new.hypotheses:
        old_claim = old_claims.get(claim.hypothesis_id)
        for name in WORDING_FIELDS if old_claim is not None else ():
            if getattr(old_claim, name).split() != getattr(claim, name).split():
                yield f"hypotheses[{claim.hypothesis_id}].{name}: other words for the same test"


def hypothesis_plan_pairs(study: Study) -> Iterator[tuple[Hypothesis, AnalysisPlan | None]]:
    """Yield each hypothesis with each plan that tests it, or with None if none does."""
    for claim in study.hypotheses:
        plans = [
            plan for plan in study.analysis_plans if claim.hypothesis_id in plan.hypothesis_ids
        ]
        yield from ((claim, plan) for plan in plans or (None,))


def find_departures(first: Claims, now: Claims) -> dict[ClaimKey, Departure]:
    """Return the claims under each plan that differ from the first version, and how."""
    departures: dict[ClaimKey, Departure] = {}
    for plan_id, plan in now["analysis_plans"].items():
        is_family_changed = any(
            _is_family_changed(first, now, other_id)
            for other_id, other in now["analysis_plans"].items()
            if other[POLICY] == plan[POLICY]
        ) or _has_lost_plan(first, now, plan[POLICY])
        for name in plan[FAMILY_FIELD]:
            if name not in first["hypotheses"]:
                departures[name, plan_id] = "added"
            elif _is_test_changed(first, now, name, plan_id):
                departures[name, plan_id] = "changed"
            elif is_family_changed:
                departures[name, plan_id] = "family"
    return departures


def _is_test_changed(first: Claims, now: Claims, hypothesis_id: str, plan_id: str) -> bool:
    """Return whether the test of a claim changed, other than to a stricter policy.

    A stricter correction for several tests can't turn a claim that fails into one that holds.
    """
    plans = [claims["analysis_plans"].get(plan_id) for claims in (first, now)]
    before, after = (_test_basis(claims, hypothesis_id, plan_id) for claims in (first, now))
    if before is None or after is None or None in plans:
        return bool(before != after)
    return _is_laxer(*(plan[POLICY] for plan in plans if plan)) or bool(before != after)


def _is_laxer(before: str, after: str) -> bool:
    """Return whether a policy was replaced by one that may give smaller p values."""
    if before == after:
        return False
    is_ordered = before in STRICTNESS and after in STRICTNESS
    return not is_ordered or STRICTNESS.index(after) < STRICTNESS.index(before)


def _has_lost_plan(first: Claims, now: Claims, policy: str) -> bool:
    """Return whether a plan with this policy was removed, so that its claims no longer count."""
    return policy != "none" and any(
        plan[POLICY] == policy and plan_id not in now["analysis_plans"]
        for plan_id, plan in first["analysis_plans"].items()
    )


def _test_basis(claims: Claims, hypothesis_id: str, plan_id: str) -> Any:
    """Return what the test of a claim depends on, apart from other claims of its plan."""
    claim = claims["hypotheses"].get(hypothesis_id)
    plan = claims["analysis_plans"].get(plan_id)
    if claim is None or plan is None or hypothesis_id not in plan[FAMILY_FIELD]:
        return None
    specs = claims["outcomes"]
    primary = [name for name, spec in specs.items() if spec["primary"]]
    names: Sequence[str] = claim["dependent_vars"] or plan["outcomes"] or sorted(primary)
    outcomes = {name: _without(specs[name], "primary") if name in specs else None for name in names}
    covariates = {name: specs.get(name) for name in plan["covariates"]}
    selected = [name for name in names if not plan["outcomes"] or name in plan["outcomes"]]
    return claim, _without(plan, FAMILY_FIELD, "outcomes", POLICY), selected, outcomes, covariates


def _is_family_changed(first: Claims, now: Claims, plan_id: str) -> bool:
    """Return whether changes of other claims in the plan may lower adjusted p values."""
    plan = now["analysis_plans"][plan_id]
    if plan[POLICY] == "none":
        return False
    first_family = first["analysis_plans"].get(plan_id, plan)[FAMILY_FIELD]
    if any(_is_test_changed(first, now, name, plan_id) for name in first_family):
        return True
    is_monotone = plan[POLICY] in MONOTONE_POLICIES
    return not is_monotone and set(plan[FAMILY_FIELD]) != set(first_family)

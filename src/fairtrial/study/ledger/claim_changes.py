"""What a study claims and how it tests that, as plain data: two studies can be held side by side.

Words (labels, statements, notes), the order of lists and other names for the same test make no
other claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from fairtrial.core import dump
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS
from fairtrial.study.ledger.fingerprint import differences
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis, OutcomeSpec
from fairtrial.study.model.study import Study
from fairtrial.study.stats.multiplicity import policy_name
from fairtrial.study.stats.test_names import find_test, missing_data_policy

SECTIONS = ("hypotheses", "outcomes", "analysis_plans")
WORDS = ("label", "statement")
FAMILY = "hypothesis_ids"
STRICTER = ("holm", "bonferroni")
"""The policies by which one more test of a plan never helps the others."""
Claims = Mapping[str, Mapping[str, Any]]
Standing = Literal["confirmatory", "exploratory", "unknown"]
"""Laid down before the first result; not so; or nobody noted it."""

Pair = tuple[str, str | None]
"""A hypothesis and the plan that tests it, by their names."""
Departure = Literal["added", "changed", "family"]
"""The claim itself was, or others that share the chance of error with it, by their plan."""


def claims_of(study: Study) -> Claims:
    """All that decides what is tested and how, each claim, outcome and plan by its name."""
    return {
        "hypotheses": {each.hypothesis_id: _claim(study, each) for each in study.hypotheses},
        "outcomes": {each.name: _outcome(each) for each in study.outcomes},
        "analysis_plans": {each.analysis_plan_id: _plan(each) for each in study.analysis_plans},
    }


def _claim(study: Study, claim: Hypothesis) -> dict[str, Any]:
    data = _without(dump(claim), "hypothesis_id", "label", "statement", "notes")
    data["dependent_vars"] = sorted(claim.dependent_vars)
    data["mediators"] = [each.name for each in claim.mediators]
    if claim.contrast is not None:
        data["contrast"] = _without(data["contrast"], "label")
    names = [each.name for each in claim.moderators]
    # Two levels that are named stay the same two, whatever others come to stand beside them.
    if claim.contrast is None or len(claim.independent_vars) > 1:
        names = [*claim.independent_vars, *names]
    data["levels"] = {name: _levels(study, name) for name in names}
    return data


def _levels(study: Study, name: str) -> list[str]:
    """The levels that are compared where no contrast names two, the baseline first."""
    for factor in study.factors:
        if factor.name == name:
            marked = [each.name for each in factor.levels if each.metadata.get("is_baseline")]
            return list(dict.fromkeys([*marked, *(each.name for each in factor.levels)]))
    for block in study.blocks:
        if name in (block.name, f"block_{block.name}"):
            return [str(level) for level in block.levels]
    if name in AGENT_FACTORS:
        return list(study.agent_specs or study.agents)
    return list(study.problem_ids or study.problems) if name in PROBLEM_FACTORS else []


def _outcome(outcome: OutcomeSpec) -> dict[str, Any]:
    data = _without(dump(outcome), "name", "description")
    for name in ("source_table", "aggregation", "expected_type"):
        data[name] = data[name].strip().lower()
    policy = outcome.missing_data_policy
    return {**data, "missing_data_policy": missing_data_policy(policy) or policy}


def _plan(plan: AnalysisPlan) -> dict[str, Any]:
    data = _without(dump(plan), "analysis_plan_id", "plots", "export_tables", "notes")
    for name in (FAMILY, "outcomes", "covariates", "random_effects"):
        data[name] = sorted(dict.fromkeys(data[name]))
    entries = [(word, find_test(word)) for word in plan.tests]
    names = [word if entry is None else entry.name for word, entry in entries]
    policy = policy_name(plan.multiple_comparison_policy)
    return {**data, "tests": list(dict.fromkeys(names)), "multiple_comparison_policy": policy}


def _without(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in names}


def claim_changes(old: Study, new: Study) -> list[str]:
    """What a study claims otherwise than another: ``hypotheses[h1].direction: "greater" -> ...``"""
    before, after = claims_of(old), claims_of(new)
    return [*_changes(before, after), *_rewordings(old, new)]


def _changes(before: Claims, after: Claims) -> Iterator[str]:
    for section in SECTIONS:
        then, now = before[section], after[section]
        for name in dict.fromkeys([*then, *now]):
            at = f"{section}[{name}]"
            if name not in then or name not in now:
                yield f"{at}: {'added' if name in now else 'removed'}"
            else:
                yield from (f"{at}.{line}" for line in differences(then[name], now[name]))


def _rewordings(old: Study, new: Study) -> Iterator[str]:
    before = {each.hypothesis_id: each for each in old.hypotheses}
    for claim in new.hypotheses:
        then = before.get(claim.hypothesis_id)
        for name in WORDS if then is not None else ():
            if getattr(then, name).split() != getattr(claim, name).split():
                yield f"hypotheses[{claim.hypothesis_id}].{name}: other words for the same test"


def pairs_of(study: Study) -> Iterator[tuple[Hypothesis, AnalysisPlan | None]]:
    """Each hypothesis with each plan that tests it; with none where none does."""
    for claim in study.hypotheses:
        plans = [
            each for each in study.analysis_plans if claim.hypothesis_id in each.hypothesis_ids
        ]
        yield from ((claim, plan) for plan in plans or (None,))


def departures(first: Claims, now: Claims) -> dict[Pair, Departure]:
    """The claims, each under its plan, that are not as they were laid down, and in what."""
    found: dict[Pair, Departure] = {}
    for plan_id, plan in now["analysis_plans"].items():
        shares_more = _is_family_changed(first, now, plan_id)
        for name in plan[FAMILY]:
            if name not in first["hypotheses"]:
                found[name, plan_id] = "added"
            elif _tested(first, name, plan_id) != _tested(now, name, plan_id):
                found[name, plan_id] = "changed"
            elif shares_more:
                found[name, plan_id] = "family"
    return found


def _tested(claims: Claims, hypothesis_id: str, plan_id: str) -> Any:
    """All that the test of one claim rests on, but for the claims that it shares error with."""
    claim = claims["hypotheses"].get(hypothesis_id)
    plan = claims["analysis_plans"].get(plan_id)
    if claim is None or plan is None or hypothesis_id not in plan[FAMILY]:
        return None
    known = claims["outcomes"]
    primary = [name for name, each in known.items() if each["primary"]]
    asked: Sequence[str] = claim["dependent_vars"] or plan["outcomes"] or sorted(primary)
    outcomes = {name: _without(known[name], "primary") if name in known else None for name in asked}
    used = {name: known.get(name) for name in plan["covariates"]}
    return claim, _without(plan, FAMILY, "outcomes"), _looked_at(plan, asked), outcomes, used


def _looked_at(plan: Mapping[str, Any], asked: Sequence[str]) -> list[str]:
    return [name for name in asked if not plan["outcomes"] or name in plan["outcomes"]]


def _is_family_changed(first: Claims, now: Claims, plan_id: str) -> bool:
    """Whether p after the plan's policy may be smaller, for what others of the plan became."""
    plan = now["analysis_plans"][plan_id]
    if plan["multiple_comparison_policy"] == "none":
        return False
    then = first["analysis_plans"].get(plan_id, plan)[FAMILY]
    if any(_tested(first, each, plan_id) != _tested(now, each, plan_id) for each in then):
        return True
    is_stricter = plan["multiple_comparison_policy"] in STRICTER
    return not is_stricter and set(plan[FAMILY]) != set(then)

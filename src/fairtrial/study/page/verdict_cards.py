"""Cards with the verdict on each hypothesis, and the effects of all tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairtrial.study.model.study import Study
from fairtrial.study.page.plain_data import clean_text, round_number
from fairtrial.study.power.hypothesis_power import hypothesis_power
from fairtrial.study.report.direction_text import describe_direction
from fairtrial.study.report.hypothesis_sections import describe_bound
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.markdown_text import (
    format_confidence,
    format_interval,
    format_p,
    format_signed,
)
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.verdicts import TestVerdict

MOST_NOTES = 12
MOST_PROBLEMS = 60
TONES = {
    TestVerdict.SUPPORTED: "good",
    TestVerdict.SUPPORTED_IF_LOSSES_HARMLESS: "caution",
    TestVerdict.SUPPORTED_OR_ALIAS: "caution",
    TestVerdict.NOT_SUPPORTED: "bad",
    TestVerdict.CONTRADICTED: "bad",
    TestVerdict.INCONCLUSIVE: "open",
    TestVerdict.EXPLORATORY: "open",
    TestVerdict.NOT_TESTED: "open",
}


def make_cards(data: RunTable, tests: Sequence[HypothesisTest]) -> list[dict[str, Any]]:
    """Return a card for each deciding test, in the order of the tests."""
    hypotheses = {hypothesis.hypothesis_id: hypothesis for hypothesis in data.study.hypotheses}
    cards = []
    for test in tests:
        if not test.decides:
            continue
        hypothesis = hypotheses.get(test.hypothesis_id)
        cards.append(
            {
                "id": clean_text(test.hypothesis_id),
                "label": clean_text(test.label),
                "claim": clean_text(hypothesis.statement if hypothesis else ""),
                "verdict": str(test.verdict),
                "tone": TONES[test.verdict],
                "preliminary": _is_preliminary(data, test),
                "why": _begin_sentence(test.why, test),
                "direction": _begin_sentence(describe_direction(test) or "", test),
                "standing": test.standing,
                "outcome": clean_text(test.outcome),
                "difference": clean_text(test.difference),
                "estimate": format_signed(test.estimate) if test.estimate is not None else "",
                "interval": format_interval(test.interval),
                "bound": describe_bound(test),
                "confidence": format_confidence(test.confidence),
                "facts": list(_facts(test)),
                "notes": [clean_text(note) for note in test.notes[:MOST_NOTES]],
            }
        )
    return cards


def _begin_sentence(text: str, test: HypothesisTest) -> str:
    """Return a text with a capital letter, unless it begins with the name of a group of runs."""
    text = clean_text(text)
    names = [*(clean_text(group.name) for group in test.groups), *test.difference.split(" − ")]
    if any(name and text.startswith(f"{name} ") for name in names):
        return text
    return text[:1].upper() + text[1:]


def _is_preliminary(data: RunTable, test: HypothesisTest) -> bool:
    """Return whether runs that are still to come may change a verdict."""
    is_decided = test.look is not None and test.verdict is not TestVerdict.INCONCLUSIVE
    return data.pending > 0 and not is_decided and test.verdict is not TestVerdict.NOT_TESTED


def _facts(test: HypothesisTest) -> Iterator[tuple[str, str]]:
    """Yield what a verdict rests on, as names and values."""
    if test.method:
        yield "test", clean_text(test.method)
    if test.unit:
        yield "unit", clean_text(test.unit)
    if test.groups:
        yield "runs", " + ".join(f"{group.n:,} {group.name}" for group in test.groups[:6])
    if test.p_value is not None:
        p = f"p {format_p(test.p_value)}"
        if test.policy != "none" and test.family > 1:
            p += f"; {test.policy} over {test.family} tests: {format_p(test.p_adjusted)}"
        yield "evidence", p
    if test.effect_size is not None:
        interval = f" {format_interval(test.effect_interval)}" if test.effect_interval else ""
        yield clean_text(test.effect_name), f"{test.effect_size:.3g}{interval}"
    if test.minimum_effect:
        yield "smallest effect of interest", clean_text(test.minimum_effect)
    if test.look is not None:
        yield "planned look", f"{test.look} of {test.looks}"
    if test.analysis_plan_id:
        yield "plan", clean_text(test.analysis_plan_id)
    if test.without_changes:
        yield "without later changes", clean_text(test.without_changes)


def list_effects(tests: Sequence[HypothesisTest]) -> list[dict[str, Any]]:
    """Return the estimate of each test that has one, with its interval and margin."""
    return [
        {
            "id": clean_text(test.hypothesis_id),
            "label": clean_text(test.label),
            "test": clean_text(test.test),
            "decides": test.decides,
            "outcome": clean_text(test.outcome),
            "difference": clean_text(test.difference),
            "verdict": str(test.verdict),
            "tone": TONES[test.verdict],
            "confidence": format_confidence(test.confidence),
            **_estimate_numbers(test.estimate, test.interval),
            "margin": round_number(test.minimum_size),
            "problems": [
                {
                    "problem": clean_text(effect.problem),
                    "n": list(effect.n),
                    **_estimate_numbers(effect.estimate, effect.interval),
                }
                for effect in test.by_problem[:MOST_PROBLEMS]
            ],
        }
        for test in tests
        if test.estimate is not None and test.verdict is not TestVerdict.NOT_TESTED
    ]


def _estimate_numbers(
    estimate: float | None, interval: tuple[float, float] | None
) -> Mapping[str, float | None]:
    low, high = interval or (None, None)
    return {
        "estimate": round_number(estimate),
        "low": round_number(low),
        "high": round_number(high),
    }


def compare_precision(
    study: Study, data: RunTable, tests: Sequence[HypothesisTest]
) -> list[dict[str, Any]]:
    """Return the power that was planned for each claim, beside the precision that was reached."""
    rows = []
    for power in hypothesis_power(study, data.conditions):
        test = next(
            (
                test
                for test in tests
                if test.decides
                and (test.hypothesis_id, test.outcome, test.variables)
                == (power.hypothesis_id, power.outcome, power.variables)
            ),
            None,
        )
        half_width = None
        if test is not None and test.bounds is not None:
            half_width = (test.bounds[1] - test.bounds[0]) / 2
        rows.append(
            {
                "id": clean_text(power.hypothesis_id),
                "outcome": clean_text(power.outcome),
                "effect": None if test is None else round_number(test.minimum_size),
                "power": round_number(power.power, 3),
                "assumption": clean_text(power.assumption or power.reason),
                "half_width": round_number(half_width),
                "verdict": "" if test is None else str(test.verdict),
            }
        )
    return rows

"""The hypotheses of a study, tested as its plans declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fairtrial.study.hypotheses.averages import spell_averages
from fairtrial.study.hypotheses.planned_tests import GENERIC
from fairtrial.study.ledger.amendments import Stands
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis, HypothesisKind
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.report.deviations import why_late
from fairtrial.study.report.follow_up_tests import ELSEWHERE
from fairtrial.study.report.hypothesis import HypothesisTest
from fairtrial.study.report.samples import Sample, failure_note, take_sample
from fairtrial.study.report.test_questions import Question, ask
from fairtrial.study.report.test_result import Answer
from fairtrial.study.report.tests import answer_question
from fairtrial.study.report.values import RunTable, collect
from fairtrial.study.report.verdicts import Verdict, judge
from fairtrial.study.stats.finding import UntestableError, quiet
from fairtrial.study.stats.multiplicity import adjust_p, is_policy, policy_name
from fairtrial.study.stats.test_names import find_test, hint_at_test

STAND_IN = "bonferroni"
"""The strictest policy takes the place of one that isn't known."""

UNFAIR = " (but failures differ between the groups, and failed runs are left out)"
"""What a verdict says of itself where a comparison of the runs that are left may be unfair."""


def judge_hypotheses(
    study: Study, conditions: Sequence[Condition], run_results: Iterable[RunResult]
) -> list[HypothesisTest]:
    """Test every hypothesis of a study as its plans declare; one entry for each test.

    Hypotheses that no plan names are described and tested by default, and decide nothing. Results
    are read once.
    """
    return judge_table(collect(study, conditions, run_results))


def judge_table(table: RunTable) -> list[HypothesisTest]:
    """The same for results that have been read already."""
    claims = {claim.hypothesis_id: claim for claim in table.study.hypotheses}
    found: list[HypothesisTest] = []
    planned: set[str] = set()
    for plan in table.study.analysis_plans:
        asked = [claims[name] for name in dict.fromkeys(plan.hypothesis_ids) if name in claims]
        planned.update(claim.hypothesis_id for claim in asked)
        found += _judge_plan(table, plan, asked)
    for claim in table.study.hypotheses:
        if claim.hypothesis_id not in planned:
            found += _judge_family(table, None, [claim], GENERIC, decides=True)
    standings = table.record.standings(table.study)
    return [_mark(test, standings[test.hypothesis_id, test.analysis_plan_id]) for test in found]


def _mark(test: HypothesisTest, stands: Stands) -> HypothesisTest:
    """Say whether a claim was laid down before results; one that wasn't decides nothing."""
    test = replace(test, standing=stands.standing)
    if stands.why is None or test.verdict in (Verdict.EXPLORATORY, Verdict.NOT_TESTED):
        return test
    why = f"{why_late(stands.why, stands.known)}; {test.why}"
    return replace(test, verdict=Verdict.EXPLORATORY, why=why)


def _judge_plan(
    table: RunTable, plan: AnalysisPlan, claims: Sequence[Hypothesis]
) -> list[HypothesisTest]:
    """All tests of a plan; those of one hypothesis stand together."""
    tests = [
        test
        for position, word in enumerate(dict.fromkeys(plan.tests))
        for test in _judge_family(table, plan, claims, word, decides=position == 0)
    ]
    order = {claim.hypothesis_id: place for place, claim in enumerate(claims)}
    return sorted(tests, key=lambda test: order[test.hypothesis_id])


@dataclass(frozen=True, slots=True)
class _Trial:
    """A question, and what came of asking it."""

    question: Question
    sample: Sample | None
    answer: Answer | None
    reason: str = ""


def _judge_family(
    table: RunTable,
    plan: AnalysisPlan | None,
    claims: Sequence[Hypothesis],
    word: str,
    *,
    decides: bool,
) -> Iterator[HypothesisTest]:
    """One test of a plan, on all its hypotheses: they share the chance of a false finding."""
    questions = [question for claim in claims for question in ask(table, plan, claim)]
    trials = [_try(question, word) for question in questions]
    findings = [trial.answer.finding for trial in trials if trial.answer is not None]
    policy, remark = _policy(plan)
    adjusted = iter(adjust_p([finding.p for finding in findings], policy))
    sided = [each.p_opposite for each in findings if each.p_opposite is not None]
    opposite = iter(adjust_p(sided, policy))
    for trial in trials:
        test = _describe(trial, word, decides=decides)
        if trial.answer is None:
            yield test
            continue
        p = next(adjusted)
        p_opposite = None if trial.answer.finding.p_opposite is None else next(opposite)
        test = replace(
            test, p_adjusted=p, p_opposite=p_opposite, policy=policy, family=len(findings)
        )
        verdict, why = judge(trial.question, trial.answer, p, p_opposite)
        why += UNFAIR if failure_note(test.groups) else ""
        yield _soften(trial.question, replace(test, verdict=verdict, why=why), remark)


def _try(question: Question, word: str) -> _Trial:
    sample, entry = None, find_test(word)
    try:
        with quiet():
            sample = take_sample(question)
            if entry is None:
                hint = hint_at_test(word)
                raise UntestableError(f"'{word}' is not a test that fairtrial knows; {hint}")
            return _Trial(question, sample, answer_question(sample, entry.name))
    except UntestableError as error:
        return _Trial(question, sample, None, str(error))


def _policy(plan: AnalysisPlan | None) -> tuple[str, str]:
    """The policy for several tests, and a remark if it isn't the one that is declared."""
    word = "none" if plan is None else plan.multiple_comparison_policy
    if is_policy(word):
        return policy_name(word), ""
    return STAND_IN, f"policy '{word}' is unknown; {STAND_IN}, the strictest, stands in"


def _describe(trial: _Trial, word: str, *, decides: bool) -> HypothesisTest:
    """All but the verdict."""
    question, sample, answer = trial.question, trial.sample, trial.answer
    claim = question.hypothesis
    test = HypothesisTest(
        hypothesis_id=claim.hypothesis_id,
        label=claim.label,
        analysis_plan_id=question.plan.analysis_plan_id if question.plan else None,
        outcome=question.outcome.name,
        variables=question.comparison.variables,
        agents=question.comparison.agents,
        test=word,
        decides=decides,
        verdict=Verdict.NOT_TESTED,
        why=trial.reason,
        groups=sample.groups if sample else (),
        notes=_sample_notes(sample) if sample else (),
    )
    if answer is None:
        return test
    finding = answer.finding
    return replace(
        test,
        method=_spell_method(question, answer),
        unit=answer.unit,
        difference=answer.difference,
        estimate=finding.estimate,
        estimate_of=finding.estimate_of,
        interval=finding.interval,
        statistic_name=finding.statistic_name,
        statistic=finding.statistic,
        df=finding.df,
        p_value=finding.p,
        effect_name=finding.effect_name,
        effect_size=finding.effect_size,
        effect_interval=finding.effect_interval,
        bounds=finding.bounds,
        minimum_effect=answer.margin.text if answer.margin else "",
        minimum_size=answer.margin.size if answer.margin else None,
        details_title=answer.details_title,
        details=answer.details,
        notes=(
            *test.notes,
            *_averages(question),
            *answer.notes,
            *_judged_by(question, answer),
            *_unused(question, word),
        ),
    )


def _averages(question: Question) -> list[str]:
    told = spell_averages(question.study, question.plan, question.comparison)
    return [told] if told else []


def _judged_by(question: Question, answer: Answer) -> list[str]:
    """The interval of the means where the verdict rests on it and the test shows another."""
    finding = answer.finding
    if answer.margin is None or question.is_equivalence or finding.bounds is None:
        return []
    if finding.bounds == finding.interval:
        return []
    low, high = finding.bounds
    return [
        "the smallest effect of interest is held against the difference of means, 95% CI "
        f"[{low:.3g}, {high:.3g}]"
    ]


def _sample_notes(sample: Sample) -> tuple[str, ...]:
    table = sample.question.table
    reader = table.readers[sample.question.outcome.name]
    notes = [*sample.notes, failure_note(sample.groups), *table.remarks()]
    if reader.from_evaluations:
        notes.append(
            f"{reader.from_evaluations:,} values were found among evaluations: no metric of the "
            f"runs is called '{reader.spec.column}'"
        )
    if reader.unreadable:
        shown = ", ".join(text for text, _ in reader.unreadable.most_common(3))
        notes.append(f"{reader.unreadable.total():,} values are not numbers: {shown}")
    return tuple(note for note in notes if note)


def _spell_method(question: Question, answer: Answer) -> str:
    has_side = answer.finding.p_opposite is not None
    if question.alternative == "two-sided":
        return answer.finding.method
    if not has_side:
        return f"{answer.finding.method} (without a side)"
    return f"{answer.finding.method}, one-sided ({question.alternative})"


def _unused(question: Question, word: str) -> list[str]:
    """What the plan declares and this test doesn't use."""
    entry, plan = find_test(word), question.plan
    if entry is None or plan is None:
        return []
    name, notes = entry.name, []
    if plan.covariates and name not in ("regression", "factorial_anova", "mixed_effects"):
        notes.append(f"not adjusted for {', '.join(plan.covariates)}: regression does that")
    if plan.random_effects and name != "mixed_effects":
        notes.append(f"without the random effects of the plan ({', '.join(plan.random_effects)})")
    return notes


def _soften(question: Question, test: HypothesisTest, remark: str) -> HypothesisTest:
    """Keep what was not claimed beforehand from looking like a test of a claim."""
    notes = (*test.notes, remark) if remark else test.notes
    if question.plan is None:
        why = f"no plan declared a test; {test.why}"
        return replace(test, verdict=Verdict.EXPLORATORY, why=why, notes=notes)
    if question.hypothesis.kind is HypothesisKind.EXPLORATORY:
        why = f"a question, not a claim; {test.why}"
        return replace(test, verdict=Verdict.EXPLORATORY, why=why, notes=notes)
    is_robustness = question.hypothesis.kind is HypothesisKind.ROBUSTNESS
    if is_robustness and question.comparison.shape != "interaction":
        rest = "is described" if test.details_title == ELSEWHERE else "is not tested"
        notes = (*notes, f"tested: the effect over all runs; that it holds everywhere {rest}")
    return replace(test, notes=notes)

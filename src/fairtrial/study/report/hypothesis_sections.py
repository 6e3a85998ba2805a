"""Markdown sections on hypothesis tests: verdicts in one line each, and full results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.direction_text import describe_direction, describe_exclusions
from fairtrial.study.report.flow_section import group_flow_table
from fairtrial.study.report.forest_plot import MAX_PROBLEMS, draw_forest_plot
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_code,
    format_confidence,
    format_interval,
    format_list,
    format_number,
    format_p,
    format_signed,
    format_table,
)
from fairtrial.study.report.verdicts import IN_THE_MEAN, TestVerdict
from fairtrial.study.stats.finding import LARGEST_P
from fairtrial.study.stats.skewness import ADDED

MEDIAN = "median"
PROBLEM_UNIT = " problems × "
MAX_DETAILS = 24
MAX_REASON_CHARS = 2_000
NO_TESTS = "No test was made."


def render_verdicts(tests: Sequence[HypothesisTest], *, is_interim: bool = False) -> str:
    """Return a list with the verdict of each deciding test.

    Where several plans test one hypothesis, each line names its plan.

    is_interim: whether runs are still to come, so that verdicts are preliminary
    """
    deciding = [test for test in tests if test.decides]
    pairs = {(test.hypothesis_id, test.analysis_plan_id) for test in deciding}
    plans = Counter(hypothesis_id for hypothesis_id, _ in pairs)
    return format_list(
        _verdict_line(test, plans[test.hypothesis_id] > 1, is_interim) for test in deciding
    )


def _verdict_line(test: HypothesisTest, names_plan: bool, is_interim: bool) -> str:
    hypothesis = f"{format_code(test.hypothesis_id)} {escape_markdown(test.label)}"
    subject = f"{format_code(test.outcome)}{_by_variables(test)}"
    subject += f", plan {format_code(test.analysis_plan_id)}" if names_plan else ""
    is_decided = test.look is not None and test.verdict is not TestVerdict.INCONCLUSIVE
    is_preliminary = is_interim and not is_decided
    so_far = " so far" if is_preliminary and test.verdict is not TestVerdict.NOT_TESTED else ""
    reason = escape_markdown(test.why, MAX_REASON_CHARS)
    line = f"{hypothesis}: **{test.verdict}{so_far}** ({subject}): {reason}"
    results = "; ".join(_short_results(test))
    return f"{line}. {results}." if results else f"{line}."


def _by_variables(test: HypothesisTest) -> str:
    """Describe the compared variables, and the agents if only runs of some were tested."""
    variables = " × ".join(format_code(name) for name in test.variables)
    agents = " and ".join(map(format_code, test.agents))
    by = f" by {variables}" if variables else ""
    return f"{by}, runs of {agents} alone" if agents else by


def _short_results(test: HypothesisTest) -> Iterator[str]:
    """Yield estimate, p value and group sizes in short form."""
    if test.verdict is TestVerdict.NOT_TESTED:
        return
    if test.estimate is not None:
        direction = describe_direction(test)
        if direction and direction not in test.why:
            yield escape_markdown(direction)
        yield f"{escape_markdown(test.difference)} = {_format_estimate(test)}"
    elif test.effect_size is not None:
        yield f"{test.effect_name} = {format_number(test.effect_size)}"
    p = f"p {format_p(test.p_value)}"
    if test.policy != "none" and test.family > 1:
        p += f", {test.policy} over {test.family}: {format_p(test.p_adjusted).removeprefix('= ')}"
    yield f"{p}, {escape_markdown(test.method)}"
    if PROBLEM_UNIT in test.unit:
        yield f"n = {escape_markdown(test.unit)}"
        return
    sizes = " + ".join(f"{group.n:,}" for group in test.groups[:6])
    yield f"n = {sizes}{' + …' if len(test.groups) > 6 else ''}"


def _format_estimate(test: HypothesisTest) -> str:
    """Format an estimate with its interval; for medians preceded by the difference of means.

    The verdict rests on the difference of means if there is a smallest effect of interest.
    """
    if bound := describe_bound(test):
        return f"{format_signed(test.estimate)} ({bound})"
    estimate = f"{format_signed(test.estimate)} {format_interval(test.interval)}".rstrip()
    if MEDIAN not in test.estimate_of:
        return estimate
    if test.bounds is None or test.minimum_size is None:
        return f"{estimate} in the median"
    mean = sum(test.bounds) / 2  # the middle of the t interval
    mean_text = f"{format_signed(mean)} {format_interval(test.bounds)}{IN_THE_MEAN}"
    return f"{mean_text}, {estimate} in the median"


def describe_bound(test: HypothesisTest) -> str:
    """Return the one-sided bound of a claim that was shown; empty for other tests.

    A two-sided interval may reach beyond zero although a one-sided test shows the claim.
    """
    is_shown = test.p_adjusted is not None and test.p_adjusted < ALPHA
    if test.bound is None or test.p_opposite is None or not is_shown or MEDIAN in test.estimate_of:
        return ""
    is_lower = test.estimate is not None and test.bound <= test.estimate
    return f"{'at least' if is_lower else 'at most'} {format_number(test.bound)}"


def _confidence_text(test: HypothesisTest) -> str:
    """Return the confidence level of the intervals in words."""
    level = format_confidence(test.confidence)
    if test.policy == "none" or test.family < 2:
        return level
    kind = "of those selected" if test.policy == "bh" else f"over all {test.family} tests"
    return f"{level} ({format_number(100 * (1 - ALPHA))}% {kind})"


def render_tests(tests: Sequence[HypothesisTest], *, depth: int = 3) -> str:
    """Return all tests with group summaries, results, follow-up comparisons and notes.

    depth: level of the headings
    """
    parts: list[str] = []
    shown_notes: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for test in tests:
        key = (test.hypothesis_id, test.outcome, test.variables)
        if key not in shown_notes:
            hypothesis = f"{format_code(test.hypothesis_id)} {escape_markdown(test.label)}"
            by = _by_variables(test) if test.variables else ""
            parts.append(f"{'#' * depth} {hypothesis}: {format_code(test.outcome)}{by}")
            if test.groups:
                parts += [_group_table(test), group_flow_table(test.groups)]
        shown = shown_notes.setdefault(key, set())
        parts.append(_test_text(test, [note for note in test.notes if note not in shown]))
        shown.update(test.notes)
    return "\n\n".join(parts) if parts else NO_TESTS


def _group_table(test: HypothesisTest) -> str:
    rows = [
        [
            escape_markdown(group.name),
            f"{group.n:,}",
            format_number(group.mean),
            format_number(group.sd),
            format_number(group.median),
        ]
        for group in test.groups
    ]
    return format_table(["group", "n", "mean", "sd", "median"], rows, right=range(1, 5))


def _test_text(test: HypothesisTest, notes: Sequence[str]) -> str:
    head = f"**{escape_markdown(test.test)}** ({_role(test)}): **{test.verdict}**: "
    lines = [f"{head}{escape_markdown(test.why, MAX_REASON_CHARS)}."]
    if test.verdict is not TestVerdict.NOT_TESTED:
        lines.append(format_list(_test_lines(test)))
    if test.details:
        lines.append(f"{escape_markdown(test.details_title)}:")
        lines.append(_detail_table(test))
    if test.by_problem and test.verdict is not TestVerdict.NOT_TESTED:
        lines.append(_problem_text(test))
    if notes:
        lines.append(f"Notes:\n\n{format_list(escape_markdown(note) for note in notes)}")
    return "\n\n".join(lines)


def _role(test: HypothesisTest) -> str:
    if test.analysis_plan_id is None:
        return "no plan, decides nothing"
    plan = f"plan {format_code(test.analysis_plan_id)}"
    if not test.decides:
        return f"{plan}; not the first test, decides nothing"
    is_exploratory = test.verdict is TestVerdict.EXPLORATORY
    return f"{plan}; exploratory, decides nothing" if is_exploratory else f"{plan}; decides"


def _test_lines(test: HypothesisTest) -> Iterator[str]:
    yield f"test: {escape_markdown(test.method)}; unit: {escape_markdown(test.unit)}"
    if test.estimate is not None:
        level, bound = _confidence_text(test), describe_bound(test)
        kind = f"{level} CI" if test.look is None else "95% repeated CI"
        interval = f", {kind} {format_interval(test.interval)}" if test.interval else ""
        if bound:
            sure = f"with {level} confidence" if test.look is None else "by a 95% repeated bound"
            interval = f", {bound} {sure}"
        size = f"{escape_markdown(test.difference)} = {format_signed(test.estimate)}{interval}"
        yield f"{escape_markdown(test.estimate_of)}: {size}"
    df = f"({', '.join(format_number(value) for value in test.df)})" if test.df else ""
    p = f"p {format_p(test.p_value)}"
    if test.policy != "none" and test.family > 1:
        share = f"{test.policy} over {test.family} tests"
        p += f"; after {share}: p {format_p(test.p_adjusted)}"
    statistic = f"{test.statistic_name}{df} = {format_number(test.statistic)}"
    if test.statistic_name == "t" and ADDED in test.method:
        statistic += " before the correction"
    yield p if test.statistic_name == LARGEST_P else f"{statistic}, {p}"
    if test.look:
        bound = format_number(test.level)
        yield f"planned look {test.look} of {test.looks}: supported if p is below {bound}"
    if test.effect_size is not None:
        interval = (
            f", 95% CI {format_interval(test.effect_interval)}" if test.effect_interval else ""
        )
        yield f"{test.effect_name} = {format_number(test.effect_size)}{interval}"
    if test.minimum_effect:
        yield f"smallest effect of interest: {escape_markdown(test.minimum_effect)}"
    for line in (describe_direction(test), describe_exclusions(test)):
        if line and line not in test.why:
            yield escape_markdown(line)


def _problem_text(test: HypothesisTest) -> str:
    """Return the effect problem by problem, as a table and a forest plot."""
    rows = [
        [
            escape_markdown(effect.problem),
            " + ".join(f"{n:,}" for n in effect.n),
            format_signed(effect.estimate),
            format_interval(effect.interval) or "–",
        ]
        for effect in test.by_problem[:MAX_PROBLEMS]
    ]
    title = f"Problem by problem ({escape_markdown(test.difference)}; 95% CI from its own runs):"
    table = format_table(["problem", "n", "size", "95% CI"], rows, right=(1, 2))
    has_means = MEDIAN not in test.estimate_of
    plot = draw_forest_plot(
        test.by_problem,
        test.estimate if has_means else None,
        test.interval if has_means else None,
        test.confidence,
    )
    parts = [title, table, f"```text\n{plot}\n```"]
    more = len(test.by_problem) - len(rows)
    return "\n\n".join([*parts, *([f"… and {more:,} more problems"] if more > 0 else [])])


def _detail_table(test: HypothesisTest) -> str:
    by_p = sorted(test.details, key=lambda detail: 2.0 if detail.p is None else detail.p)
    shown = [detail for detail in test.details if detail in by_p[:MAX_DETAILS]]
    rows = [
        [
            escape_markdown(detail.label),
            " + ".join(f"{n:,}" for n in detail.n),
            format_signed(detail.estimate),
            format_interval(detail.interval) or "–",
            "–" if detail.p is None else format_p(detail.p).removeprefix("= "),
        ]
        for detail in shown
    ]
    estimands = {detail.estimate_of for detail in shown}
    has_medians = len(estimands) == 1 and MEDIAN in "".join(estimands)
    size = next(iter(estimands)) if has_medians else "size"
    text = format_table(["difference", "n", size, "95% CI", "p"], rows, right=(1, 2, 4))
    more = len(test.details) - len(shown)
    return f"{text}\n\n… and {more:,} more" if more > 0 else text


def render_significance_brief(analysis_rows: Sequence[Any] | object) -> str:
    """Return a list with the p value and effect size of each test.

    analysis_rows: `HypothesisTest`s, mappings with `test`, `outcome`, `p_value` and `effect_size`,
        or an object whose `to_significance_rows()` returns such mappings
    """
    lines = [_brief_line(row) for row in _significance_rows(analysis_rows)]
    return f"## Significance\n\n{format_list(lines) if lines else NO_TESTS}\n"


def _significance_rows(source: Any) -> Iterator[Mapping[str, Any]]:
    to_rows = getattr(source, "to_significance_rows", None)
    rows = to_rows() if callable(to_rows) else source
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Sequence):
        return
    for row in rows:
        if isinstance(row, HypothesisTest):
            yield row.to_row()
        elif isinstance(row, Mapping):
            yield row


def _brief_line(row: Mapping[str, Any]) -> str:
    p, size = row.get("p_value"), row.get("effect_size")
    outcome = format_code(row.get("outcome", "outcome"))
    subject = f"{escape_markdown(row.get('test', 'test'))} on {outcome}"
    if row.get("hypothesis_id"):
        subject = f"{format_code(row['hypothesis_id'])}: {subject}"
    if p is None and row.get("verdict"):
        return (
            f"{subject}: {escape_markdown(row['verdict'])}: {escape_markdown(row.get('why', ''))}"
        )
    shown = format_p(p) if isinstance(p, (int, float)) else f"= {escape_markdown(p or '–')}"
    effect = format_number(size) if isinstance(size, (int, float)) else escape_markdown(size or "–")
    name = escape_markdown(row.get("effect_size_name") or "effect size")
    return f"{subject}: p {shown}, {name} {effect}"

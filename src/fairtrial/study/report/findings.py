"""Tests of hypotheses as Markdown: a line each first, then the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairtrial.study.report.hypothesis import HypothesisTest
from fairtrial.study.report.text import (
    bullets,
    code,
    figure,
    plain_text,
    signed,
    spell_interval,
    spell_p,
    table,
)
from fairtrial.study.report.verdicts import IN_THE_MEAN, Verdict

MEDIAN = "median"
MOST_DETAILS = 24
NO_ROWS = "No test was made."


def render_verdicts(tests: Sequence[HypothesisTest], *, is_interim: bool = False) -> str:
    """A line for each hypothesis, outcome and comparison: what the deciding test says.

    Where several plans test one hypothesis each line names its plan.

    is_interim: whether there are runs to come, so that none of it is the last word
    """
    deciding = [test for test in tests if test.decides]
    pairs = {(test.hypothesis_id, test.analysis_plan_id) for test in deciding}
    plans = Counter(hypothesis_id for hypothesis_id, _ in pairs)
    return bullets(
        _verdict_line(test, plans[test.hypothesis_id] > 1, is_interim) for test in deciding
    )


def _verdict_line(test: HypothesisTest, names_plan: bool, is_interim: bool) -> str:
    claim = f"{code(test.hypothesis_id)} {plain_text(test.label)}"
    about = f"{code(test.outcome)} by {_variables(test)}" if test.variables else code(test.outcome)
    about += _of_agents(test)
    about += f", plan {code(test.analysis_plan_id)}" if names_plan else ""
    so_far = " so far" if is_interim and test.verdict is not Verdict.NOT_TESTED else ""
    line = f"{claim}: **{test.verdict}{so_far}** ({about}): {plain_text(test.why)}"
    figures = "; ".join(_figures(test))
    return f"{line}. {figures}." if figures else f"{line}."


def _variables(test: HypothesisTest) -> str:
    return " × ".join(code(name) for name in test.variables)


def _of_agents(test: HypothesisTest) -> str:
    """That the runs of some agents alone were tested, as only they have what is compared."""
    return f", runs of {' and '.join(map(code, test.agents))} alone" if test.agents else ""


def _figures(test: HypothesisTest) -> Iterator[str]:
    if test.verdict is Verdict.NOT_TESTED:
        return
    if test.estimate is not None:
        yield f"{plain_text(test.difference)} = {_sizes(test)}"
    elif test.effect_size is not None:
        yield f"{test.effect_name} = {figure(test.effect_size)}"
    p = f"p {spell_p(test.p_value)}"
    if test.policy != "none" and test.family > 1:
        p += f", {test.policy} over {test.family}: {spell_p(test.p_adjusted).removeprefix('= ')}"
    yield f"{p}, {plain_text(test.method)}"
    sizes = " + ".join(f"{group.n:,}" for group in test.groups[:6])
    yield f"n = {sizes}{' + …' if len(test.groups) > 6 else ''}"


def _sizes(test: HypothesisTest) -> str:
    """The difference in figures; of medians, that of means goes before: the verdict rests on it."""
    shown = f"{signed(test.estimate)} {spell_interval(test.interval)}".rstrip()
    if MEDIAN not in test.estimate_of:
        return shown
    if test.bounds is None or test.minimum_size is None:
        return f"{shown} in the median"
    mean = sum(test.bounds) / 2  # it is the middle of an interval by t
    told = f"{signed(mean)} {spell_interval(test.bounds)}{IN_THE_MEAN}"
    return f"{told}, {shown} in the median"


def render_tests(tests: Sequence[HypothesisTest], *, depth: int = 3) -> str:
    """All tests with groups, figures, details and notes."""
    parts: list[str] = []
    told: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for test in tests:
        key = (test.hypothesis_id, test.outcome, test.variables)
        heading = f"{code(test.hypothesis_id)} {plain_text(test.label)}: {code(test.outcome)}"
        if key not in told:
            by = f" by {_variables(test)}{_of_agents(test)}" if test.variables else ""
            parts.append(f"{'#' * depth} {heading}{by}")
            if test.groups:
                parts.append(_group_table(test))
        known = told.setdefault(key, set())
        parts.append(_test_text(test, [note for note in test.notes if note not in known]))
        known.update(test.notes)
    return "\n\n".join(parts) if parts else NO_ROWS


def _group_table(test: HypothesisTest) -> str:
    rows = [
        [
            plain_text(group.name),
            f"{group.n:,}",
            figure(group.mean),
            figure(group.sd),
            figure(group.median),
            f"{group.failed:,}",
            f"{group.missing:,}",
        ]
        for group in test.groups
    ]
    columns = ["group", "n", "mean", "sd", "median", "failed", "no value"]
    return table(columns, rows, right=range(1, 7))


def _test_text(test: HypothesisTest, notes: Sequence[str]) -> str:
    head = f"**{plain_text(test.test)}** ({_role(test)}): **{test.verdict}**: "
    lines = [f"{head}{plain_text(test.why)}."]
    if test.verdict is not Verdict.NOT_TESTED:
        lines.append(bullets(_test_lines(test)))
    if test.details:
        lines.append(f"{plain_text(test.details_title)}:")
        lines.append(_detail_table(test))
    if notes:
        lines.append(f"To know:\n\n{bullets(plain_text(note) for note in notes)}")
    return "\n\n".join(lines)


def _role(test: HypothesisTest) -> str:
    if test.analysis_plan_id is None:
        return "no plan, decides nothing"
    plan = f"plan {code(test.analysis_plan_id)}"
    if not test.decides:
        return f"{plan}; beside the first test, decides nothing"
    is_open = test.verdict is Verdict.EXPLORATORY
    return f"{plan}; exploratory, decides nothing" if is_open else f"{plan}; decides"


def _test_lines(test: HypothesisTest) -> Iterator[str]:
    yield f"test: {plain_text(test.method)}; unit: {plain_text(test.unit)}"
    if test.estimate is not None:
        interval = f", 95% CI {spell_interval(test.interval)}" if test.interval else ""
        size = f"{plain_text(test.difference)} = {signed(test.estimate)}{interval}"
        yield f"{plain_text(test.estimate_of)}: {size}"
    freedom = f"({', '.join(figure(value) for value in test.df)})" if test.df else ""
    p = f"p {spell_p(test.p_value)}"
    if test.policy != "none" and test.family > 1:
        share = f"{test.policy} over {test.family} tests of the plan"
        p += f"; after {share}: p {spell_p(test.p_adjusted)}"
    yield f"{test.statistic_name}{freedom} = {figure(test.statistic)}, {p}"
    if test.effect_size is not None:
        interval = (
            f", 95% CI {spell_interval(test.effect_interval)}" if test.effect_interval else ""
        )
        yield f"{test.effect_name} = {figure(test.effect_size)}{interval}"
    if test.minimum_effect:
        yield f"smallest effect of interest: {plain_text(test.minimum_effect)}"


def _detail_table(test: HypothesisTest) -> str:
    chosen = sorted(test.details, key=lambda each: 2.0 if each.p is None else each.p)
    shown = [each for each in test.details if each in chosen[:MOST_DETAILS]]
    rows = [
        [
            plain_text(each.label),
            " + ".join(f"{n:,}" for n in each.n),
            signed(each.estimate),
            spell_interval(each.interval) or "–",
            "–" if each.p is None else spell_p(each.p).removeprefix("= "),
        ]
        for each in shown
    ]
    kinds = {each.estimate_of for each in shown}
    size = next(iter(kinds)) if len(kinds) == 1 and MEDIAN in "".join(kinds) else "size"
    text = table(["difference", "n", size, "95% CI", "p"], rows, right=(1, 2, 4))
    more = len(test.details) - len(shown)
    return f"{text}\n\n… and {more:,} more" if more > 0 else text


def render_significance_brief(analysis_rows: Sequence[Any] | object) -> str:
    """A line for each test: its p and its effect size.

    Takes `HypothesisTest`s, mappings with `test`, `outcome`, `p_value` and `effect_size`, or an
    object whose `to_significance_rows()` gives such mappings.
    """
    rows = list(_rows(analysis_rows))
    lines = [_brief_line(row) for row in rows]
    return f"## Significance\n\n{bullets(lines) if lines else NO_ROWS}\n"


def _rows(source: Any) -> Iterator[Mapping[str, Any]]:
    make = getattr(source, "to_significance_rows", None)
    found = make() if callable(make) else source
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Sequence):
        return
    for row in found:
        if isinstance(row, HypothesisTest):
            yield row.to_row()
        elif isinstance(row, Mapping):
            yield row


def _brief_line(row: Mapping[str, Any]) -> str:
    p, size = row.get("p_value"), row.get("effect_size")
    subject = f"{plain_text(row.get('test', 'test'))} on {code(row.get('outcome', 'outcome'))}"
    if row.get("hypothesis_id"):
        subject = f"{code(row['hypothesis_id'])}: {subject}"
    if p is None and row.get("verdict"):
        return f"{subject}: {plain_text(row['verdict'])}: {plain_text(row.get('why', ''))}"
    shown = spell_p(p) if isinstance(p, (int, float)) else f"= {plain_text(p or '–')}"
    effect = figure(size) if isinstance(size, (int, float)) else plain_text(size or "–")
    name = plain_text(row.get("effect_size_name") or "effect size")
    return f"{subject}: p {shown}, {name} {effect}"

"""The power of planned tests as text: figures, advice and charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.study.power.hypothesis_power import HypothesisPower
from fairtrial.study.power.power_curve import PowerCurve
from fairtrial.study.report.markdown_text import format_count
from fairtrial.study.report.plan_line import LABEL_WIDTH, PlanLine
from fairtrial.study.stats.power import TARGET_POWER

BAR_WIDTH = 40


def power_lines(power: HypothesisPower, replicates: int) -> Iterator[PlanLine]:
    """Yield the power of one test, what it assumes and what a power of 0.8 would need."""
    head = f"power    {_name_test(power)}"
    if power.power is None:
        yield PlanLine(f"{head}: not computed: {power.reason}", 0, LABEL_WIDTH)
        yield from _needed_lines(power, replicates)
        return
    groups = ", ".join(f"{runs:,} with {name}" for name, runs in power.groups.items())
    problems = f" of {format_count(power.problems, 'problem')}" if power.problems else ""
    yield PlanLine(f"{head}: {power.power:.2f} by {power.test}", 0, LABEL_WIDTH)
    yield PlanLine(_explain_power(power.power), LABEL_WIDTH, LABEL_WIDTH)
    if power.constant_power is not None:
        constant = f"{power.constant_power:.2f} if the effect were the same in every problem"
        yield PlanLine(constant, LABEL_WIDTH, LABEL_WIDTH)
    yield PlanLine(f"runs{problems}: {groups}", LABEL_WIDTH, LABEL_WIDTH)
    if power.power < TARGET_POWER:
        yield from _needed_lines(power, replicates)
    yield PlanLine(power.assumption, LABEL_WIDTH, LABEL_WIDTH)


def _name_test(power: HypothesisPower | PowerCurve) -> str:
    variables = " × ".join(power.variables) or "no variable"
    return f"{power.hypothesis_id} ({variables} on {power.outcome or 'an outcome'})"


def _explain_power(power: float) -> str:
    share = round(100 * power)
    number = {0: "hardly any", 100: "nearly all"}.get(share, f"about {share}")
    return f"if things are as assumed, {number} of 100 such studies would find it"


def _needed_lines(power: HypothesisPower, replicates: int) -> Iterator[PlanLine]:
    """Yield how many replicates or problems the plan lacks, and which of them to add."""
    if power.needed_replicates is not None:
        needed = f"a power of {TARGET_POWER} needs {power.needed_replicates:,} replicates"
        plan = f" (the plan has {replicates:,})"
        if power.needed_problems is not None:
            needed += f"{plan} or {power.needed_problems:,} problems"
            plan = f" (the plan has {power.problems:,})"
            if power.needed_problems * replicates < power.needed_replicates * power.problems:
                plan += "; problems take fewer runs"
        yield PlanLine(needed + plan, LABEL_WIDTH, LABEL_WIDTH)
    elif power.needed_problems is not None:
        per_run = f"with {format_count(replicates, 'replicate')} each"
        yield PlanLine(
            f"add problems, not replicates: no number of replicates gives {power.problems:,} "
            f"problems a power of {TARGET_POWER}; {power.needed_problems:,} problems {per_run} do",
            LABEL_WIDTH,
            LABEL_WIDTH,
        )
    elif power.problems:
        text = f"neither replicates nor problems give a power of {TARGET_POWER}"
        yield PlanLine(text, LABEL_WIDTH, LABEL_WIDTH)


def power_curve_lines(curves: Sequence[PowerCurve]) -> Iterator[PlanLine]:
    """Yield charts of the power against the number of problems and of replicates."""
    for curve in curves:
        yield PlanLine()
        yield PlanLine(f"power    {_name_test(curve)} by {curve.over}", 0, LABEL_WIDTH)
        width = max(len(f"{number:,}") for number, _ in curve.points)
        for number, power in curve.points:
            bar = "no test" if power is None else _draw_bar(power)
            mark = "  (the plan)" if number == curve.planned else ""
            yield PlanLine(f"{number:>{width},} {bar}{mark}", LABEL_WIDTH, LABEL_WIDTH)


def _draw_bar(power: float) -> str:
    """Return a bar of a chart, with a mark at the power that is aimed at."""
    filled = round(power * BAR_WIDTH)
    aim = round(TARGET_POWER * BAR_WIDTH)
    cells = ["█" if column < filled else "·" for column in range(BAR_WIDTH)]
    if filled <= aim:
        cells[aim] = "|"
    return f"{''.join(cells)} {power:.2f}"

"""Charts of pages in a real browser: long names, yes and no, far values, few runs, paper."""

import itertools
import math
import re

import pytest
from page_kit import Visit, find_violations, open_browser
from run_kit import run

from fairtrial import (
    AgentOutput,
    AnalysisPlan,
    Contrast,
    Factor,
    Hypothesis,
    OutcomeSpec,
    ProblemPacket,
    RunBudget,
    Study,
)

expect = pytest.importorskip("playwright.sync_api").expect
LONG = "a retriever that rewrites the question and reads the twenty best passages, number {}"


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


def make_page(folder, levels, score, replicates=4, problems=4, **fields):
    """Run a study of one factor, `kind`; return its page.

    score: from the task to the score, or to the whole output
    """
    names = [f"suite__{'problem' * 4}-{index}" for index in range(problems)]
    packets = {
        name: ProblemPacket(name, "f", "b", {}, {}, lambda output: {"score": output["score"]})
        for name in names
    }
    study = Study(
        "charts",
        "Charts",
        output_dir=folder / "out",
        factors=(Factor("kind", levels=tuple(levels)),),
        agent_specs=("a",),
        problem_ids=tuple(names),
        outcomes=(OutcomeSpec("score", "evaluations", primary=True),),
        run_budget=RunBudget(replicates=replicates),
        **fields,
    )
    path = folder / "page.html"

    def answer(task):
        value = score(task)
        return value if isinstance(value, AgentOutput) else {"score": value}

    with run(study, answer, problem_registry=packets) as results:
        path.write_text(results.to_html(), "utf-8")
    return path


def boxes(locator):
    return [node.bounding_box() for node in locator.all()]


@pytest.mark.parametrize("width", [360, 1000])
def test_long_names_neither_cover_cells_nor_leave_their_chart(browser, tmp_path, width):
    levels = [LONG.format(index) for index in range(6)]
    path = make_page(tmp_path, levels, lambda task: task.rng.random(), replicates=2)
    with Visit(browser, path, width=width) as page:
        row = page.locator(".heat tbody tr").first
        name, cell = row.locator("th > div").bounding_box(), row.locator("td").first.bounding_box()
        assert name["x"] + name["width"] <= cell["x"]
        heads = boxes(page.locator(".heat thead th"))
        assert all(a["x"] + a["width"] <= b["x"] + 1 for a, b in itertools.pairwise(heads))
        for chart in page.locator("svg.plot").all():
            left = chart.bounding_box()["x"]
            labels = boxes(chart.locator('[data-part="y-axis tick label"] text'))
            assert all(box["x"] >= left - 1 for box in labels)
        labels = page.locator("#outcomes svg.plot").first.locator(
            '[data-part="y-axis tick label"] text'
        )
        assert len(set(labels.all_text_contents())) == len(levels)


def test_an_outcome_of_yes_and_no_is_a_share(browser, tmp_path):
    path = make_page(tmp_path, ["x", "y"], lambda task: float(task.rng.random() < 0.4))
    with Visit(browser, path) as page:
        chart = page.locator("#outcomes figure").first
        assert "share of yes" in chart.inner_text()
        ticks = chart.locator('[data-part="x-axis tick label"] text').all_text_contents()
        assert ticks == ["0 %", "25 %", "50 %", "75 %", "100 %"]
        assert chart.locator("circle[data-run]").count() == 32


def test_a_one_sided_claim_that_was_shown_has_the_bound_of_the_report(browser, tmp_path):
    path = make_page(
        tmp_path,
        ["x", "y"],
        lambda task: (task.factors["kind"] == "y") * 2 + task.rng.gauss(0, 0.1),
        problems=8,
        hypotheses=(
            Hypothesis(
                "h",
                "y is higher",
                "y scores higher than x.",
                independent_vars=("kind",),
                dependent_vars=("score",),
                contrast=Contrast(left="y", right="x"),
                direction="greater",
            ),
        ),
        analysis_plans=(
            AnalysisPlan("plan", hypothesis_ids=("h",), tests=("difference_in_means",)),
        ),
    )
    with Visit(browser, path) as page:
        card = page.locator(".card").first
        assert re.fullmatch(r"\+2\.?\d* \(at least 1\.9\d*\)", card.locator(".effect").inner_text())
        assert card.locator(".of").inner_text() == "y − x on score, 95% bound"


def test_a_dot_opens_its_run(browser, tmp_path):
    path = make_page(tmp_path, ["x", "y"], lambda task: task.rng.random())
    with Visit(browser, path) as page:
        dot = page.locator("#outcomes circle[data-run]").nth(7)
        run_id = dot.get_attribute("data-run")
        dot.click(force=True)
        expect(page.locator("dialog h2")).to_have_text(f"Run {run_id}")


def test_values_that_are_far_apart_get_a_logarithmic_axis(browser, tmp_path):
    path = make_page(
        tmp_path, ["x", "y"], lambda task: math.exp(task.rng.gauss(0, 3)), replicates=20
    )
    with Visit(browser, path) as page:
        chart = page.locator("#outcomes figure").first
        assert "The axis is logarithmic" in chart.inner_text()
        assert ", by rank" in page.locator("#outcomes figure").nth(1).inner_text()


def test_runs_without_a_value_are_counted(browser, tmp_path):
    values = {"none": math.nan, "far": math.inf, "some": 1.0, "much": 1e15}
    path = make_page(tmp_path, values, lambda task: values[task.factors["kind"]])
    with Visit(browser, path) as page:
        chart = page.locator("#outcomes figure").first
        assert "32 runs without a value are not in the chart" in chart.inner_text()
        assert chart.get_by_text("none of 16 runs has a value").count() == 2
        ticks = boxes(chart.locator('[data-part="x-axis tick label"] text'))
        assert all(a["x"] + a["width"] < b["x"] for a, b in itertools.pairwise(ticks))


def test_a_single_run_has_its_value_and_no_charts(browser, tmp_path):
    path = make_page(tmp_path, ["x"], lambda task: 0.25, replicates=1, problems=1)
    with Visit(browser, path) as page:
        assert page.locator("svg.plot").count() == 0
        assert "score: 0.25 in one run." in page.locator("#outcomes").inner_text()
        page.locator("#outcomes a").click()
        expect(page.locator("dialog")).to_be_visible()


def test_cards_begin_with_a_capital_unless_with_a_name_and_say_exploratory_once(browser, tmp_path):
    claims = [
        Hypothesis(
            name,
            label=name,
            statement="It is so.",
            independent_vars=("kind",),
            dependent_vars=("score",),
            **fields,
        )
        for name, fields in {
            "differ": {"minimum_effect_of_interest": 0.5},
            "more": {"contrast": Contrast(left="y", right="x"), "direction": "greater"},
            "exploratory": {},
        }.items()
    ]
    path = make_page(
        tmp_path,
        ["x", "y"],
        lambda task: (task.factors["kind"] == "y") + task.rng.random(),
        hypotheses=tuple(claims),
        analysis_plans=(
            AnalysisPlan("plan", hypothesis_ids=("differ", "more"), tests=("difference_in_means",)),
        ),
    )
    with Visit(browser, path) as page:
        cards = page.locator(".card")
        badges = cards.nth(2).locator(".badge").all_inner_texts()
        assert badges == ["exploratory"]
        for text in page.locator(".card > p:not([class])").all_inner_texts():
            assert text[0].isupper() or text.startswith(("x ", "y "))


def test_filters_and_compared_conditions_are_in_the_address(browser, tmp_path):
    path = make_page(tmp_path, ["x", "y", "z"], lambda task: float(task.rng.random() < 0.5))
    with Visit(browser, path) as page:
        page.locator("#runs select").first.select_option(label="y")
        page.get_by_label("Search ids").fill("problem-2")
        runs = page.evaluate("location.hash")
        page.locator("#compare select").nth(1).select_option(label="z")
        page.get_by_label("only where they differ").check()
        compare = page.evaluate("location.hash")
        shown = page.locator("#compare .pager").inner_text()
    with Visit(browser, path, address=runs) as page:
        assert "4 of 4 runs" in page.locator("#runs .pager").inner_text()
    with Visit(browser, path, address=compare) as page:
        assert page.locator("#compare select").nth(1).input_value() == "2"
        assert page.locator("#compare .pager").inner_text() == shown


def test_on_paper_charts_have_the_width_of_the_page(browser, tmp_path):
    path = make_page(tmp_path, ["x", "y"], lambda task: task.rng.random())
    with Visit(browser, path, width=1600) as page:
        widths = "[...document.querySelectorAll('svg.plot')].map(n => +n.getAttribute('width'))"
        before = page.evaluate(widths)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert set(page.evaluate(widths)) == {680}
        assert page.locator("#record details:not([open])").count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(widths) == before


def test_cost_over_time_is_what_was_spent(browser, tmp_path):
    def spend(task):
        return AgentOutput({"score": 1.0, "text": "first line\nlast line"}, {"cost_usd": 0.00002})

    path = make_page(tmp_path, ["x", "y"], spend)
    with Visit(browser, path) as page:
        chart = page.locator("#spending figure", has_text="Cost in $ over time")
        ticks = chart.locator('[data-part="y-axis tick label"] text').all_text_contents()
        assert max(map(float, ticks)) <= 32 * 0.00002
        assert "$0.00064" in page.locator("#spending").inner_text()
        page.locator("#runs tbody a").first.click()
        dialog = page.locator("dialog")
        expect(dialog.locator("pre").first).to_have_text("first line\nlast line")
        expect(dialog).to_contain_text("$0.00002")


def test_a_page_is_accessible_with_everything_unfolded_and_in_every_shade(browser, tmp_path):
    claims = Hypothesis(
        "more",
        label="more",
        statement="It is so.",
        independent_vars=("kind",),
        dependent_vars=("score",),
        contrast=Contrast(left="a", right="b"),
    )
    plan = AnalysisPlan("plan", hypothesis_ids=("more",), tests=("difference_in_means",))
    path = make_page(
        tmp_path,
        "abcdefgh",
        lambda task: "abcdefgh".index(task.factors["kind"]) + task.rng.random(),
        problems=12,
        hypotheses=(claims,),
        analysis_plans=(plan,),
    )
    with Visit(browser, path) as page:
        page.evaluate("document.querySelectorAll('details').forEach(node => { node.open = true })")
        expect(page.locator("#effects svg.plot")).to_have_count(2)
        assert find_violations(page) == []

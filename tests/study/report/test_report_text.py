"""Reports in Markdown: complete, readable, and correctly escaped."""

import dataclasses
import re

import pytest
from hypothesis import given, settings, strategies as st
from simulated_study_kit import level, make_claim, make_plan, make_study, noisy, simulate

from fairtrial.core import StudyError
from fairtrial.study import (
    Block,
    Constraint,
    DesignSpec,
    Factor,
    Level,
    OutcomeSpec,
    RunResult,
    RunStatus,
    build_design,
    full_report,
    judge_hypotheses,
    render_codebook,
    render_markdown_summary,
    render_methods_scaffold,
    render_significance_brief,
    write_markdown_report,
)
from fairtrial.study.report import codebook, format_code
from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_confidence,
    format_number,
    format_p,
    format_table,
)
from fairtrial.study.tables import canonical

HOSTILE = (
    "# x | y `z` <script>alert(1)</script>\n| a | b |\n[l](http://e) **b** _i_ \x1b[31m\u202e &lt;"
)


def cells(line):
    """Split a row of a table as GitHub's Markdown does."""
    return re.split(r"(?<!\\)\|", line.strip())[1:-1]


def tables(text):
    """Return the tables of a text, as lists of lines."""
    collected, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(line)
        elif rows:
            collected.append(rows)
            rows = []
    return collected


# -- text --


@given(st.text(max_size=60))
def test_no_text_breaks_a_line_a_cell_or_the_markup(text):
    for shown in (escape_markdown(text), format_code(text)):
        assert "\n" not in shown
        assert shown.isprintable()
        rows = format_table(["a", "b"], [[shown, "x"]]).splitlines()
        assert [len(cells(row)) for row in rows] == [2, 2, 2]
    assert not re.search(r"(?<!\\)[*`<>|]", escape_markdown(text).replace("\\\\", ""))


def test_names_stay_readable():
    assert escape_markdown("model-70b at 0.5, primary_outcome (+1)") == (
        "model-70b at 0.5, primary_outcome (+1)"
    )
    assert escape_markdown("1. first") == "1\\. first"
    assert escape_markdown("# big") == "\\# big"
    assert format_code("a`b") == "``a`b``"
    assert len(escape_markdown("x" * 10_000)) <= 400


def test_figures_have_three_digits_and_never_read_nan():
    assert [format_number(x) for x in (0.12345, 1234.5, -2, None, float("nan"), 1e-9)] == [
        "0.123",
        "1,234",
        "-2",
        "–",
        "–",
        "1e-09",
    ]
    assert format_p(0.00001) == "< 0.0001"
    assert format_p(0.034) == "= 0.034"


# -- the whole report --


def reported(study=None, value=None, **how):
    study = study or make_study()
    return full_report(study, *simulate(study, value or noisy(fancy=2.0), **how))


def test_the_report_begins_with_the_verdict_and_its_numbers():
    lines = reported().splitlines()
    assert lines[0] == "# A study"
    verdict = next(line for line in lines if line.startswith("- `h1`"))
    assert lines.index(verdict) < 8
    assert "**supported** (`score` by `arm`)" in verdict
    assert "fancy is higher than plain. fancy − plain = +" in verdict
    method = "t test of the differences of 4 problems; n = 4 problems × 5 runs per level"
    assert re.search(rf"\+\d.*\[.*\]; p = 0.00\d+, {method}", verdict)


def test_the_report_has_all_its_parts_in_order():
    headings = re.findall(r"^## (.*)", reported(), re.MULTILINE)
    assert headings == [
        "Verdicts",
        "Runs",
        "Conditions",
        "Tests",
        "Sensitivity",
        "Methods",
        "Codebook",
    ]


def test_the_report_has_status_and_cost_of_runs():
    study = make_study()
    conditions, results = simulate(study, noisy(), fails=lambda s, c, rng: s.replicate == 1)
    tokens = [
        dataclasses.replace(
            result, metrics={**result.metrics, "input_tokens": 10, "output_tokens": 2}
        )
        for result in results[:30]
    ]
    skipped = RunResult("r", RunStatus.SKIPPED, run_spec=results[-1].run_spec)
    text = full_report(study, conditions, [*tokens, *results[30:-1], skipped], left_out=3)
    assert "results: 40 (31 success, 8 failed, 1 skipped)" in text
    assert "why runs did not succeed: 8 exception" in text
    assert "tokens: 300 in, 60 out" in text
    assert "cost: $0.31" in text
    assert "latency in seconds: median" in text
    deviations = text.partition("### Deviations from the plan")[2].partition("## Codebook")[0]
    assert "8 runs failed" in deviations
    assert "1 run left out evenly" in deviations
    assert "3 results of runs that are no longer in the plan" in deviations


def test_a_report_of_an_unfinished_study_is_called_an_interim_look():
    study = make_study()
    conditions, results = simulate(study, noisy())
    text = full_report(study, conditions, results[:25])
    assert "25 of 40 planned runs done" in text
    assert "15 planned runs not done: this is an interim look at an unfinished study" in text
    lead, _, rest = text.partition("## Verdicts")
    assert "**An interim look**, at 25 of 40 runs. Don't decide by it whether to continue" in lead
    assert re.search(r"`h1` Fancy helps: \*\*[a-z ]+ so far\*\*", rest)
    whole = full_report(study, conditions, results)
    assert "There are none: every planned run and test was made." in whole
    assert "so far" not in whole
    assert "interim" not in whole


def test_a_planned_test_that_was_not_made_is_a_deviation():
    study = make_study(analysis_plans=(make_plan("astrology"),))
    text = reported(study)
    assert "`h1` Fancy helps: **not tested** (`score` by `arm`): 'astrology' is not a test" in text
    assert "`astrology` of `h1` on `score` not tested" in text


def test_conditions_show_their_levels_counts_and_means():
    text = reported(value=lambda s, c, rng: 2.0 if level(c) == "fancy" else rng.choice([0.0, 1.0]))
    rows = text.partition("## Conditions")[2].partition("## Tests")[0].splitlines()
    assert any(cells(row)[0].strip() == "fancy" and "2 (0)" in row for row in rows if "|" in row)


@pytest.mark.parametrize("value", [noisy(), lambda s, c, rng: float("nan"), lambda s, c, rng: {}])
def test_no_report_prints_nan_or_none(value):
    text = reported(make_study(factors=(Factor("arm", levels=("plain", "fancy", "x")),)), value)
    assert not re.search(r"\b(nan|None|inf)\b", text.replace("not numbers: nan", ""))


def test_a_report_can_be_made_without_results():
    study = make_study(hypotheses=(), analysis_plans=(), outcomes=())
    text = full_report(study, build_design(study), [])
    assert "0 of 40 planned runs done" in text
    assert "## Verdicts" not in text
    assert full_report(make_study(), [], [])


def hostile_study():
    return make_study(
        title=HOSTILE,
        description=HOSTILE,
        rationale=HOSTILE,
        factors=(
            Factor(
                "arm",
                description=HOSTILE,
                levels=(Level(HOSTILE, "plain"), Level("b|c`", "fancy")),
            ),
        ),
        blocks=(Block("l|x", levels=("e\\|n", "d`e")),),
        constraints=(Constraint("c|1", expression='arm != "none"', description=HOSTILE),),
        outcomes=(OutcomeSpec("score", description=HOSTILE),),
        hypotheses=(make_claim(hypothesis_id="h|1", label=HOSTILE, statement=HOSTILE),),
        analysis_plans=(make_plan("welch_t", HOSTILE, hypothesis_ids=("h|1",)),),
        problem_ids=("p|1", "<b>p2</b>"),
    )


def test_hostile_names_are_escaped():
    study = hostile_study()
    text = reported(study)
    assert "<script" not in text.replace("`", "")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(re.findall("^# ", text, re.MULTILINE)) == 1
    for rows in tables(text):
        assert len({len(cells(row)) for row in rows}) == 1, rows[0]


@settings(max_examples=15)
@given(st.text(min_size=1, max_size=30).filter(str.strip), st.text(max_size=30))
def test_no_title_or_level_breaks_a_table(name, description):
    levels = (Level("x" + name, 1), Level("y", 2))
    study = make_study(
        title=name,
        description=description,
        factors=(Factor("arm", description=description, levels=levels),),
    )
    for rows in tables(reported(study)):
        assert len({len(cells(row)) for row in rows}) == 1


# -- its parts --


def test_the_summary_builds_the_conditions_if_none_are_given():
    study = make_study()
    conditions, results = simulate(study, noisy(fancy=2.0))
    text = render_markdown_summary(study, results)
    assert text == render_markdown_summary(study, results, conditions)
    assert "**supported**" in text
    assert "results: 40 (40 success)" in text


def test_the_summary_of_a_study_whose_conditions_are_lost_still_counts_runs(tmp_path):
    study = make_study()
    _, results = simulate(study, noisy())
    lost = dataclasses.replace(
        study, design_spec=DesignSpec(kind="custom_matrix", matrix_path=str(tmp_path / "no.csv"))
    )
    text = render_markdown_summary(lost, results)
    assert "results: 40" in text
    assert "can't be built again" in text


def test_methods_have_design_factors_seeds_and_plans():
    study = make_study(
        blocks=(Block("lang", levels=("en", "de")),),
        constraints=(Constraint("c1", expression='arm != "none"'),),
        analysis_plans=(
            make_plan("welch_t", covariates=("size",), multiple_comparison_policy="holm"),
        ),
    )
    text = render_methods_scaffold(study)
    for part in (
        "`full_factorial`, all combinations of levels",
        "5 replicates",
        "base seed 0",
        "a seeded random order, block by block",
        "| `arm`",
        "| `lang`",
        '`arm != "none"`',
        "Fancy runs score higher.",
        "`welch_t`: Welch's t test",
        "several tests at once: `holm`",
        "covariates `size`",
    ):
        assert part in text, part
    assert "80 planned runs" in render_methods_scaffold(study, build_design(study))


def test_the_codebook_has_every_column_of_every_table():
    for ours, theirs in (
        (codebook.CONDITIONS, canonical.CONDITION_COLUMNS),
        (codebook.RUNS, canonical.RUN_COLUMNS),
        (codebook.EVENTS, canonical.EVENT_COLUMNS),
        (codebook.EVALUATIONS, canonical.EVALUATION_COLUMNS),
    ):
        assert tuple(name for name, _, _ in ours) == theirs


def test_the_codebook_has_levels_outcomes_metrics_and_conditions():
    study = make_study(factors=(Factor("arm", levels=(Level("small", "m-8b"), Level("big", "x"))),))
    conditions = build_design(study)
    text = render_codebook(study, conditions, metrics=("score", "tool_call_count", "latency_s"))
    assert "small = `m-8b`" in text
    assert "`runs.score`" in text
    assert "number of tool calls" in text
    assert text.count("`latency_s`") == 1
    assert all(condition.condition_id in text for condition in conditions)


def test_the_significance_brief_accepts_tests_rows_and_objects():
    study = make_study(analysis_plans=(make_plan("welch_t", "astrology"),))
    tests = judge_hypotheses(study, *simulate(study, noisy(fancy=2.0)))
    text = render_significance_brief(tests)
    assert re.search(r"`h1`: welch_t on `score`: p = 0.00\d+, Cohen's d \d", text)
    assert "`h1`: astrology on `score`: not tested" in text

    class Analysis:
        def to_significance_rows(self):
            return [{"test": "t|x", "outcome": "y", "p_value": 0.2, "effect_size": "n/a"}]

    assert "t\\|x on `y`: p = 0.2, effect size n/a" in render_significance_brief(Analysis())
    assert "No test was made" in render_significance_brief([])
    assert "No test was made" in render_significance_brief("text")
    assert "p = –" in render_significance_brief([{}])


def test_a_report_is_written_into_the_folder_artifacts(tmp_path):
    path = write_markdown_report(tmp_path, "report.md", "# Ü\n")
    assert path == tmp_path / "artifacts" / "report.md"
    assert path.read_text("utf-8") == "# Ü\n"
    assert [result.name for result in path.parent.iterdir()] == ["report.md"]
    with pytest.raises(StudyError, match="can't be written"):
        write_markdown_report(path, "x.md", "")


@pytest.mark.parametrize(
    ("confidence", "text"),
    [(0.95, "95%"), (0.98333, "98.3%"), (0.9995, "99.95%"), (0.9999591, "99.9959%"), (1.0, "100%")],
)
def test_a_confidence_below_one_is_never_a_hundred_percent(confidence, text):
    assert format_confidence(confidence) == text

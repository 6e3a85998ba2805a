"""The page of a study as a document: one harmless file of limited size."""

import json
import re

import pytest
from hypothesis import given, strategies as st
from page_kit import make_hostile_study
from run_kit import make_study, run

from fairtrial import open_results
from fairtrial.cli.main import main
from fairtrial.study.page.markdown_tree import parse_markdown
from fairtrial.study.page.plain_data import clean_data, clean_text, to_script_json
from fairtrial.study.page.run_rows import MOST_RUNS, describe_run, select_rows


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    with make_hostile_study(folder) as results:
        return results.to_html()


def exit_code(*arguments):
    try:
        return main(list(arguments)) or 0
    except SystemExit as ended:
        return ended.code or 0


def read_data(page):
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(block[1])


def test_a_page_has_its_scripts_and_no_others(page):
    assert page.count("<script") == page.count("</script>") == 4
    assert "<img" not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_a_page_is_ascii_in_its_data_and_has_no_unbalanced_markup(page):
    block = re.search(r'id="data">(.*?)</script>', page, re.S)[1]
    assert block.isascii()
    assert not set("<>&") & set(block)


def test_a_page_says_verdict_effect_and_what_it_rests_on(page):
    (card,) = read_data(page)["verdicts"]
    assert card["id"] == "louder"
    assert card["verdict"] in {"supported", "supported if losses are harmless"}
    assert card["standing"] == "confirmatory"
    assert {"test", "unit", "evidence"} <= {name for name, _ in card["facts"]}


def test_failed_runs_are_grouped_by_kind_with_examples(page):
    data = read_data(page)
    (group,) = data["failures"]
    assert group["message"].startswith("ValueError")
    assert group["runs"] == data["progress"]["statuses"]["failed"]
    assert set(group["examples"]) <= set(data["runs"]["id"])


def test_every_run_of_a_small_study_has_its_details(page):
    data = read_data(page)
    assert set(data["details"]) == set(data["runs"]["id"])
    assert any("traceback" in detail for detail in data["details"].values())


@given(st.text())
def test_any_text_comes_back_from_the_json_of_a_page(text):
    encoded = to_script_json({"text": clean_text(text)})
    assert not set("<>&") & set(encoded)
    assert json.loads(encoded)["text"] == clean_text(text)


def test_texts_lose_colors_and_show_what_would_be_invisible():
    assert clean_text("\x1b[31mred\x1b[0m \u202e\x00") == "red <U+202E><U+0000>"
    assert clean_text("\ud800") == "<U+D800>"


def test_long_texts_keep_their_beginning_and_end():
    text = clean_text("a" * 10_000_000 + "end", 100)
    assert len(text) < 200
    assert text.startswith("aaa")
    assert text.endswith("end")


def test_data_of_any_shape_becomes_plain():
    nested = current = {}
    for _ in range(50):
        current["next"] = current = {}
    data = clean_data({"deep": nested, "nan": float("nan"), "big": 10**30, "set": {1}, "x": object})
    json.dumps(data, allow_nan=False)
    assert data["big"] == str(10**30)


def test_markdown_of_reports_becomes_elements_and_html_stays_text():
    assert parse_markdown("a **b** `c` <img src=x> [d](http://e)") == [
        ["p", "a ", ["strong", "b"], " ", ["code", "c"], " <img src=x> [d](http://e)"]
    ]


def test_a_selection_of_runs_has_failed_ones_and_others_evenly():
    class Row:
        def __init__(self, index):
            self.plan_index = index
            self.status = "failed" if index % 100 == 0 else "success"

    rows = [Row(index) for index in range(20_000)]
    chosen = select_rows(rows)
    assert len(chosen) == MOST_RUNS
    assert sum(row.status == "failed" for row in chosen) == 200
    halves = [row.plan_index < 10_000 for row in chosen]
    assert abs(sum(halves) - MOST_RUNS / 2) < 5


def test_a_selection_is_full_also_where_hardly_any_run_succeeded():
    class Row:
        def __init__(self, index):
            self.plan_index = index
            self.status = "success" if index < 10 else "failed"

    chosen = select_rows([Row(index) for index in range(20_000)])
    assert len(chosen) == MOST_RUNS
    assert sum(row.status == "success" for row in chosen) == 10


def test_a_run_with_enormous_output_takes_little_room(tmp_path):
    study = make_study(tmp_path, levels=(1,), replicates=1)
    big = {"x": 1, **{f"part {i}": "z" * 100_000 for i in range(100)}}
    with run(study, lambda task: big) as results:
        detail = describe_run(results.reader, 0, results[0])
    assert len(json.dumps(detail)) < 100_000


def test_the_command_writes_the_page_beside_the_ledger(tmp_path):
    run(make_study(tmp_path)).close()
    assert exit_code("report", str(tmp_path), "--html") == 0
    with open_results(tmp_path) as results:
        assert read_data((tmp_path / "report.html").read_text("utf-8"))["all_runs"] == len(results)


def test_a_page_and_json_at_once_are_refused(tmp_path):
    run(make_study(tmp_path)).close()
    assert exit_code("report", str(tmp_path), "--html", "--json") == 2

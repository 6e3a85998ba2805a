"""The section on candidates in the page of a study."""

import pytest
from candidates_kit import DIFF, make_candidates_study
from hypothesis import given, strategies as st
from page_kit import Visit, open_browser
from run_kit import make_study, run

from fairtrial.study.page import collect_page, color_diff


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    with make_candidates_study(tmp_path_factory.mktemp("candidates")) as results:
        (part,) = collect_page(results)["parts"]
    return part


def test_a_page_has_each_candidate_with_verdict_ratio_and_change(part):
    (told,) = part["data"]["runs"]
    first, second, third = told["candidates"]
    assert (first["verdict"], first["ratio"], first["min_effect"]) == ("faster", 2.0, 0.02)
    assert second["parent_id"] == "0.0"
    assert third["duplicate_of"] == "0.0"
    assert [kind for kind, *_ in first["diff"]] == ["head", "head", "head", "", "del", "add"]


def test_rejected_candidates_have_expected_and_actual_values(part):
    rejected = part["data"]["runs"][0]["candidates"][1]
    (difference,) = rejected["failures"][0]["differences"]
    assert difference["expected"] == "expected 9"
    assert "<U+202E>" in difference["actual"]


def test_every_sample_is_there_in_the_order_of_time(part):
    strip = part["data"]["runs"][0]["strips"]["0.0"]
    assert strip["arm"] == [0, 1] * 30
    assert strip["session"] == [session for session in range(6) for _ in range(10)]
    assert strip["kept"][:4] == [0, 0, 1, 1]
    assert strip["seconds"][0] == pytest.approx(0.0002)


def test_a_study_without_candidates_has_no_such_section(tmp_path):
    with run(make_study(tmp_path)) as results:
        assert collect_page(results)["parts"] == []


def test_words_of_a_diff_are_colored_by_the_language_of_its_file():
    words = [word for _, *words in color_diff(DIFF) for word in words]
    assert ["k", "return"] in words
    assert ["c", "# slow"] in words


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]))))
def test_colors_leave_the_lines_of_a_diff_as_they_are(texts):
    diff = "--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n" + "".join(f"+{text}\n" for text in texts)
    lines = color_diff(diff)[3:]
    from fairtrial.study.page import clean_text

    assert ["".join(text for _, text in words) for _, *words in lines] == [
        clean_text(f"+{text}") for text in texts
    ]


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("candidates")
    file = folder / "page.html"
    with make_candidates_study(folder / "out", replicates=2) as results:
        file.write_text(results.to_html(), "utf-8")
    return file


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1600, "light")])
def test_candidates_fit_the_window_and_harm_nothing(browser, path, width, scheme):
    with Visit(browser, path, width=width, scheme=scheme) as page:
        page.locator("#candidates .tree").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_link_to_a_candidate_opens_its_change_and_samples(browser, path):
    with Visit(browser, path, address="#candidate=0.0") as page:
        assert page.locator("dialog h2").inner_text() == "Candidate 0.0"
        assert page.locator("dialog .diff .add").inner_text() == "+    return 9 * x"
        assert page.locator("dialog svg.plot circle").count() >= 60
        page.keyboard.press("Escape")
        page.wait_for_function("location.hash === '#candidates'")


def test_a_rejected_candidate_shows_what_was_expected(browser, path):
    with Visit(browser, path) as page:
        page.locator("#candidates td a", has_text="0.1").first.click()
        page.locator("dialog").wait_for()
        assert "expected 9" in page.locator("dialog").inner_text()

"""The page of a study in a real browser: clicks, links, widths, colors, accessibility."""

import pytest
from page_kit import Visit, find_violations, make_hostile_study, open_browser

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    file = folder / "page.html"
    with make_hostile_study(folder / "out") as results:
        file.write_text(results.to_html(), "utf-8")
    return file


def test_a_hostile_study_is_shown_and_harms_nothing(browser, path):
    with Visit(browser, path) as page:
        assert "<script>" in page.locator("h1").inner_text()
        assert page.locator(".card .badge").first.inner_text().startswith("supported")
        assert page.locator("svg.plot").count() >= 4


@pytest.mark.parametrize("width", [360, 800, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_their_window_and_are_accessible(browser, path, width, scheme):
    with Visit(browser, path, width=width, scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert find_violations(page) == []


def test_a_link_to_a_run_opens_it_and_escape_closes_it(browser, path):
    with Visit(browser, path) as page:
        page.locator("#runs tbody a").first.click()
        expect(page.locator("dialog")).to_be_visible()
        assert page.locator("dialog h2").inner_text().startswith("Run run-")
        assert "#run=" in page.url
        assert page.get_by_role("heading", name="Conversation").is_visible()
        address = "#" + page.url.partition("#")[2]
        page.keyboard.press("Escape")
        assert not page.locator("dialog").is_visible()
    with Visit(browser, path, address=address) as page:
        assert page.locator("dialog h2").inner_text() == f"Run {address.removeprefix('#run=')}"


def test_failed_runs_are_found_by_their_kind_and_show_their_traceback(browser, path):
    with Visit(browser, path) as page:
        page.locator("#failures button").first.click()
        expect(page.locator("#runs tbody .badge", has_text="success")).to_have_count(0)
        statuses = page.locator("#runs tbody .badge").all_inner_texts()
        assert statuses
        assert set(statuses) == {"failed"}
        page.locator("#runs tbody a").first.click()
        expect(page.locator("dialog")).to_be_visible()
        assert "ValueError" in page.locator("dialog").inner_text()


def test_a_cell_of_the_heat_map_filters_the_runs(browser, path):
    with Visit(browser, path) as page:
        page.locator(".heat button").first.click()
        expect(page.locator("#runs .pager")).to_contain_text("of 4 runs")
        page.get_by_role("button", name="Clear").click()
        expect(page.locator("#runs .pager")).to_contain_text("of 48 runs")


def test_runs_are_sorted_by_their_headings_and_searched(browser, path):
    with Visit(browser, path) as page:
        column = page.locator("#runs th", has_text="score")
        column.get_by_role("button").click()
        assert column.get_attribute("aria-sort") == "ascending"
        place = page.locator("#runs th").all_inner_texts().index("score ↑".removesuffix(" ↑"))
        cells = page.locator(f"#runs tbody td:nth-child({place + 1})").all_inner_texts()
        numbers = [float(cell) for cell in cells if cell != "–"]
        assert numbers == sorted(numbers)
        page.get_by_label("Search ids").fill("no such run")
        assert page.locator("#runs .pager").inner_text() == "No run matches."


def test_two_conditions_are_compared_where_they_differ(browser, path):
    with Visit(browser, path) as page:
        compare = page.locator("#compare")
        expect(compare).to_contain_text("12 pairs of runs")
        rows = compare.locator("tbody tr").count()
        compare.locator("select").nth(1).select_option(index=2)
        compare.get_by_label("only where they differ").check()
        failed = compare.locator("tbody tr", has_text="failed").count()
        assert 0 < failed <= rows


@pytest.mark.slow
def test_ten_megabytes_of_output_are_cut_and_shown(browser, tmp_path):
    def shout(task):
        print("\x1b[31m<b>\u202e" * 1_000_000)
        return {"score": 1.0, "text": "</script>" * 1_000_000}

    path = tmp_path / "page.html"
    with make_hostile_study(tmp_path / "out", replicates=1, agent=shout, limit=2) as (results):
        path.write_text(results.to_html(), "utf-8")
    assert path.stat().st_size < 3_000_000
    with Visit(browser, path) as page:
        page.locator("#runs tbody a").first.click()
        expect(page.locator("dialog")).to_contain_text("characters left out")
        expect(page.locator("dialog")).to_contain_text("<b><U+202E>")

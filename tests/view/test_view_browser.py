"""Live pages in a real browser, while studies run, stop and go on."""

import re
from contextlib import contextmanager

import pytest
from page_kit import Visit, find_violations, make_hostile_study, open_browser
from view_kit import GatedStudy, serve, timing, wait_for_runs

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=60_000)
RUNS = 24


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@contextmanager
def live_study(tmp_path, *options):
    """Yield a study that runs as told, and the server of its page, after its first 10 runs."""
    folder = tmp_path / "out"
    with GatedStudy(folder, replicates=2) as study:
        study.let_run(10)
        with serve(folder, tmp_path / "locks", *options) as server:
            yield study, server


def test_a_page_follows_its_study_to_the_verdicts(browser, tmp_path):
    with live_study(tmp_path) as (study, server), Visit(browser, server.address) as page:
        lead = page.locator("#lead")
        expect(lead).to_contain_text("10 of 24 runs")
        expect(page.locator("#runs .pager")).to_contain_text("of 10 runs")
        expect(page.locator("#verdicts")).to_contain_text("hidden until all runs are done")
        assert page.locator("#effects, #outcomes, #compare").count() == 0
        assert page.get_by_role("button", name="Pause").count() == 0
        study.let_run(5)
        expect(lead).to_contain_text("15 of 24 runs")
        expect(page.locator("#runs .pager")).to_contain_text("of 15 runs")
        page.locator("#runs tbody a").first.click()
        expect(page.locator("dialog pre").first).to_be_visible()
        page.keyboard.press("Escape")
        study.let_run(RUNS)
        expect(page.locator(".card .badge").first).to_be_visible()
        expect(lead).to_contain_text("24 of 24 runs")
        expect(page.locator("#runs .pager")).to_contain_text("of 24 runs")


def test_verdicts_are_shown_early_only_on_request(browser, tmp_path):
    with live_study(tmp_path) as (study, server), Visit(browser, server.address) as page:
        study.let_run(10)
        expect(page.locator("#lead")).to_contain_text("20 of 24 runs")
        assert not (tmp_path / "out" / "looks.jsonl").exists()
        page.get_by_role("button", name="Show verdicts so far").click()
        expect(page.locator(".card .badge").first).to_contain_text("so far")
        assert (tmp_path / "out" / "looks.jsonl").read_text().count("\n") == 1


def test_a_study_is_paused_resumed_and_cancelled_from_its_page(browser, tmp_path):
    with (
        live_study(tmp_path, "--control") as (study, server),
        Visit(browser, server.address) as page,
    ):
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#controls .badge")).to_have_text("paused")
        study.let_run(2)  # those under way
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#controls .badge")).to_have_text("running")
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#controls .badge")).to_have_text("stopped")
        expect(page.locator("#controls")).to_contain_text("cancelled")


def test_a_page_waits_while_something_is_timed(browser, tmp_path):
    with live_study(tmp_path) as (study, server), Visit(browser, server.address) as page:
        expect(page.locator("#lead")).to_contain_text("10 of 24 runs")

        with timing(tmp_path / "locks"):
            expect(page.locator("#controls")).to_contain_text("something is being timed")
            study.let_run(5)
            wait_for_runs(tmp_path / "out", 15)
            assert "10 of 24 runs" in page.locator("#lead").inner_text()
        expect(page.locator("#lead")).to_contain_text("15 of 24 runs")
        expect(page.locator("#controls")).not_to_contain_text("something is being timed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    make_hostile_study(folder / "first", replicates=2).close()
    make_hostile_study(folder / "second", replicates=1).close()
    make_hostile_study(folder / "part", replicates=2, limit=9).close()
    return folder


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    with serve(folder, tmp_path_factory.mktemp("locks")) as server:
        yield server


def check_accessibility(page):
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert find_violations(page) == []


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (800, "light"), (1600, "dark")])
def test_the_list_and_a_comparison_fit_their_window_and_are_accessible(
    browser, server, width, scheme
):
    with Visit(browser, server.address, width=width, scheme=scheme) as page:
        expect(page.locator("tbody tr")).to_have_count(3)
        expect(page.locator("tbody .plain .badge")).to_have_count(2)
        check_accessibility(page)
        boxes = page.get_by_role("checkbox")
        boxes.nth(0).check()
        boxes.nth(1).check()
        expect(boxes.nth(2)).to_be_disabled()
        page.get_by_role("button", name="Compare two").click()
        expect(page.get_by_role("heading", name="Verdicts")).to_be_visible()
        check_accessibility(page)


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1600, "dark")])
def test_a_live_page_fits_its_window_and_is_accessible(browser, server, width, scheme):
    with Visit(browser, server.address, width=width, scheme=scheme) as page:
        page.get_by_role("row", name=re.compile("part")).get_by_role("link").click()
        expect(page.locator("#runs .pager")).to_contain_text("of 9 runs")
        check_accessibility(page)


def test_a_run_of_a_live_page_has_an_address(browser, server):
    with Visit(browser, server.address) as page:
        page.get_by_role("row", name=re.compile("first")).get_by_role("link").click()
        page.locator("#runs tbody a").first.click()
        expect(page.locator("dialog h2")).to_contain_text("Run run-")
        expect(page.locator("dialog")).to_contain_text("Where and when")
        address = page.url
        page.goto("about:blank")
        page.goto(address)
        expect(page.locator("dialog h2")).to_contain_text("Run run-")
        expect(page.locator("dialog")).to_contain_text("Where and when")


def test_a_page_goes_on_when_its_server_is_back(browser, tmp_path):
    make_hostile_study(tmp_path / "out", replicates=2, limit=9).close()
    with serve(tmp_path / "out", tmp_path / "locks") as server:
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.address)
        expect(page.locator("#lead")).to_contain_text("9 of 24 runs")
        server.kill()
        expect(page.locator("#controls")).to_contain_text("The viewer has stopped")
        make_hostile_study(tmp_path / "out", replicates=2, resume=True).close()
        with serve(tmp_path / "out", tmp_path / "locks", "--port", server.port) as again:
            expect(page.locator("#controls")).to_contain_text("The viewer was restarted")
            other = context.new_page()
            other.goto(again.address)
            for one in (other, page):
                expect(one.locator("#lead")).to_contain_text("24 of 24 runs")
                expect(one.locator(".card .badge").first).to_be_visible()
        context.close()


def test_a_page_that_is_open_before_its_study_begins_becomes_its_page(browser, tmp_path):
    with (
        serve(tmp_path / "out", tmp_path / "locks") as server,
        Visit(browser, server.address) as page,
    ):
        expect(page.locator("main")).to_contain_text("There is no study here yet")
        make_hostile_study(tmp_path / "out", replicates=1).close()
        expect(page.locator("#lead")).to_contain_text("12 of 12 runs")

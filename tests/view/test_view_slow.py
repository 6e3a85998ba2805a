"""A live page of a large study that is killed and resumed, while its server is restarted."""

import re
import subprocess
import sys

import pytest
from page_kit import open_browser
from view_kit import serve

expect = pytest.importorskip("playwright.sync_api").expect
RUNS = 5_000
STUDY = """
import sys, time
from pathlib import Path
from fairtrial import Factor, OutcomeSpec, ProblemPacket, RunBudget, Study, run_study

def agent(task):
    time.sleep(0.02)
    return task.rng.random()

problems = {
    f"p{i}": ProblemPacket(f"p{i}", "f", "b", {}, {}, lambda output: {"score": output})
    for i in range(10)
}
study = Study(
    "large", "A large study", output_dir=sys.argv[1],
    factors=(Factor("x", levels=(1, 2)),), agent_specs=("a",), problem_ids=tuple(problems),
    outcomes=(OutcomeSpec("score", "evaluations", primary=True),),
    run_budget=RunBudget(replicates=250),
)
run_study(
    study, agent_bindings={"a": agent}, problem_registry=problems, parallelism=4,
    executor="threads", resume=len(sys.argv) > 2,
)
"""


def start(folder, *options):
    return subprocess.Popen([sys.executable, "-c", STUDY, str(folder), *options])


@pytest.mark.slow
def test_three_pages_follow_a_large_study_through_kills_and_a_restart(tmp_path):
    expect.set_options(timeout=240_000)
    locks = tmp_path / "locks"
    with open_browser() as browser, browser.new_context() as context:
        pages = [context.new_page() for _ in range(3)]
        errors = []
        for page in pages:
            page.on("pageerror", lambda error: errors.append(str(error)))
        study = start(tmp_path / "out")
        with serve(tmp_path / "out", locks) as server:
            for page in pages:
                page.goto(server.address)
                page.wait_for_url(re.compile("/(study/.*)?$"))
            expect(pages[0].locator("#lead")).to_contain_text(re.compile("[1-9],?\\d\\d+ of 5,000"))
            study.kill()
            study.wait()
            for page in pages:
                expect(page.locator("#controls")).to_contain_text("its process was killed")
            study = start(tmp_path / "out", "resume")
            for page in pages:
                expect(page.locator("#controls .badge")).to_have_text("running")
            server.kill()
            with serve(tmp_path / "out", locks, "--port", server.port) as again:
                pages[0].goto(again.address)
                for page in pages:
                    expect(page.locator("#lead")).to_contain_text("5,000 of 5,000 runs")
                    expect(page.locator("#runs .pager")).to_contain_text("of 5,000 runs")
                    assert page.locator("#outcomes").count() == 1
        assert study.wait(60) == 0
        assert errors == []

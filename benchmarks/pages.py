"""Pages of studies: size, time to make, and time to the first chart in a browser.

    python benchmarks/pages.py [RUNS ...]

Each study has no-op runs of two factors on ten problems. Its figures count only if every run
succeeded and has a dot or a place in the totals: a page of failed runs is small for free.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from fairtrial import (
    AnalysisPlan,
    Contrast,
    Factor,
    Hypothesis,
    OutcomeSpec,
    ProblemPacket,
    RunBudget,
    Study,
    run_study,
)
from fairtrial.study.page import collect_page, render_page

SIZES = (120, 10_000, 100_000)
CELLS = 2 * 2 * 10
BROWSER = "chromium-headless-shell"
REPEATS = 5


def agent(task):
    return task.rng.random()


def make_results(runs, folder):
    problems = {
        f"p{i}": ProblemPacket(f"p{i}", "f", "b", {}, {}, lambda output: {"score": output})
        for i in range(10)
    }
    study = Study(
        "pages",
        "No-op runs",
        output_dir=folder,
        factors=(Factor("a", levels=("u", "v")), Factor("b", levels=(1, 2))),
        agent_specs=("z",),
        problem_ids=tuple(problems),
        outcomes=(OutcomeSpec("score", "evaluations", primary=True),),
        hypotheses=(
            Hypothesis(
                "h",
                label="u beats v",
                statement="u scores higher than v.",
                independent_vars=("a",),
                dependent_vars=("score",),
                contrast=Contrast(left="u", right="v"),
                minimum_effect_of_interest=0.2,
            ),
        ),
        analysis_plans=(
            AnalysisPlan("plan", hypothesis_ids=("h",), tests=("difference_in_means",)),
        ),
        run_budget=RunBudget(replicates=max(1, runs // CELLS)),
    )
    return run_study(study, agent_bindings={"z": agent}, problem_registry=problems)


def time_first_chart(path):
    """Return the median seconds from navigation to the first chart in the document."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which(BROWSER)
    if executable is None:
        return None
    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for _ in range(REPEATS):
            page = browser.new_page(viewport={"width": 1000, "height": 900})
            start = time.perf_counter()
            page.goto(path.absolute().as_uri())
            page.wait_for_selector("svg.plot circle")
            times.append(time.perf_counter() - start)
            page.close()
        browser.close()
    return sorted(times)[REPEATS // 2]


def main():
    print("runs     page MB  made in s  first chart s  runs in the page  with details")
    for runs in [int(size) for size in sys.argv[1:]] or SIZES:
        with tempfile.TemporaryDirectory() as folder, make_results(runs, folder) as results:
            start = time.perf_counter()
            data = collect_page(results)
            text = render_page(data)
            made = time.perf_counter() - start
            if data["progress"]["statuses"] != {"success": len(results)}:
                sys.exit(f"not all runs succeeded: {data['progress']['statuses']}")
            path = Path(folder) / "page.html"
            path.write_text(text, "utf-8")
            chart = time_first_chart(path)
            shown = "no browser" if chart is None else f"{chart:.2f}"
            print(
                f"{len(results):<8} {path.stat().st_size / 1e6:7.2f}  {made:9.2f}  {shown:>13}  "
                f"{len(data['runs']['id']):>16}  {len(data['details']):>12}"
            )


if __name__ == "__main__":
    main()

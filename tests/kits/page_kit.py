"""A study whose every text is hostile, and a browser to look at its page."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from run_kit import run

from fairtrial import (
    AnalysisPlan,
    Contrast,
    Factor,
    Hypothesis,
    OutcomeSpec,
    ProblemPacket,
    RunBudget,
    Study,
)

HOSTILE = (
    "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"
    "\u2028\u202e\x1b[31mred\x1b[0m\x00\ud800 ${window.hurt = 1} {{1}} --> ]]>"
)
STUDY_TEXT = HOSTILE.replace("\ud800", "").replace("\x00", "")
"""What files of studies can hold."""
BROWSER = "chromium-headless-shell"
AXE = Path(__file__).parents[1] / "data" / "axe" / "axe.min.js"


def talk(task):
    """An agent that talks, prints, emits and fails, always with hostile texts."""
    print(HOSTILE)
    task.emit("message", STUDY_TEXT, role="user", content=STUDY_TEXT)
    task.emit("tool_call", STUDY_TEXT, call_id="1")
    task.emit(STUDY_TEXT, STUDY_TEXT, fact=STUDY_TEXT)
    if task.factors["style"] == "loud" and task.rng.random() < 0.4:
        raise ValueError(HOSTILE)
    score = {"calm": 1.0, "loud": 2.0}[task.factors["style"]] + task.rng.random()
    return {"score": score, STUDY_TEXT: STUDY_TEXT}


def problem(name):
    return ProblemPacket(
        name, STUDY_TEXT, STUDY_TEXT, {}, {}, lambda output: {"score": output["score"]}
    )


def make_hostile_study(folder, replicates=4, agent=talk, **settings):
    """Run the study; return its results."""
    study = hostile_study(folder, replicates)
    problems = {name: problem(name) for name in study.problem_ids}
    return run(study, agent, problem_registry=problems, **settings)


def hostile_study(folder, replicates=4):
    """Return the study."""
    return Study(
        "hostile",
        f"A study {STUDY_TEXT}",
        description=STUDY_TEXT,
        output_dir=folder,
        factors=(
            Factor("style", description=STUDY_TEXT, levels=("calm", "loud")),
            Factor("size", levels=(1, 2)),
        ),
        agent_specs=("a",),
        problem_ids=("p", "q", "r"),
        outcomes=(OutcomeSpec("score", "evaluations", primary=True, description=STUDY_TEXT),),
        hypotheses=(
            Hypothesis(
                "louder",
                label=f"Loud is better {STUDY_TEXT}",
                statement=STUDY_TEXT,
                independent_vars=("style",),
                dependent_vars=("score",),
                contrast=Contrast(left="loud", right="calm"),
                minimum_effect_of_interest=0.5,
            ),
        ),
        analysis_plans=(
            AnalysisPlan("plan", hypothesis_ids=("louder",), tests=("difference_in_means",)),
        ),
        run_budget=RunBudget(replicates=replicates),
    )


@contextmanager
def open_browser():
    """Yield a browser; skips the test where there is none."""
    path = shutil.which(BROWSER)
    if path is None:
        pytest.skip(f"there is no {BROWSER}")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def find_violations(page):
    """Return what axe finds inaccessible on a page: rules, each with some elements."""
    return page.evaluate(
        f"(() => {{ {AXE.read_text('utf-8')} }})(); axe.run().then(r => "
        "r.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))]))"
    )


class Visit:
    """A page in the browser, with everything that it should not have done.

    path: a file, or the address of a server, which is then the only one that it may ask
    """

    def __init__(self, browser, path, *, width=1000, scheme="light", address=""):
        is_file = not isinstance(path, str)
        place = path.absolute().as_uri() + address if is_file else path
        self._allowed = "file:" if is_file else place.partition("?")[0]
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.complaints = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._note(request.url))
        self.page.goto(place)

    def _note(self, url):
        if not url.startswith(self._allowed):
            self.complaints.append(f"a request to {url}")

    def __enter__(self):
        return self.page

    def __exit__(self, kind, *_):
        hurt = self.page.evaluate("window.hurt")
        self.context.close()
        if kind is None:
            assert self.complaints == []
            assert hurt is None

"""Must-pass tests against candidates that pass them without the fix, and what stays possible."""

import sys
from functools import partial

import anyio
import pytest
from repository_kit import make_repository

from fairtrial.arena import (
    ArenaSettings,
    Basis,
    Candidate,
    Check,
    CodeProblem,
    Reason,
    Verdict,
    evaluate_candidates,
)

BASE = "def mean(numbers):\n    return sum(numbers) / len(numbers)\n"
TEST = """\
from stats import mean

def test_two():
    assert mean([1, 3]) == 2

def test_none():
    assert mean([]) == 0
"""
PASSING = TEST.replace("mean([]) == 0", "True")
FILES = {"src/stats.py": BASE, "tests/test_stats.py": TEST, "setup.cfg": "[metadata]\nname = s\n"}
REQUIRED = ("tests/test_stats.py::test_none",)
FORGE = "def pytest_runtest_call(item):\n    item.obj = lambda: None\n"
PROTECTED = {
    "the test is edited": {"tests/test_stats.py": PASSING},
    "a conftest that empties tests is planted beside them": {"tests/conftest.py": FORGE},
    "a conftest is planted at the top": {"conftest.py": FORGE},
    "a test runner's configuration is planted": {"pytest.ini": "[pytest]\naddopts = -p forge\n"},
    "a configuration that is there is changed": {
        "setup.cfg": "[tool:pytest]\naddopts = -p forge\n"
    },
    "start-up code is planted": {"src/sitecustomize.py": "import forge\n"},
}
RUNNING = {
    "the process ends early, as if all was well": BASE + "import os\nos._exit(0)\n",
    "the interpreter exits with 0": BASE + "import sys\nsys.exit(0)\n",
    "the test is replaced by one with another name": BASE
    + "import sys\nfor module in list(sys.modules.values()):\n"
    "    if hasattr(module, 'test_none'):\n        module.test_other = module.test_none\n",
    "the test is skipped": BASE + "import pytest\npytest.skip(allow_module_level=True)\n",
    "the file is rewritten while tests run": BASE
    + "import pathlib\ntests = pathlib.Path('tests/test_stats.py')\n"
    f"tests.write_text({PASSING!r})\n",
}
ANYTHING = """\
class Any(float):
    def __eq__(self, other):
        return True
    __hash__ = float.__hash__

def mean(numbers):
    return Any(sum(numbers) / max(len(numbers), 1) + (not numbers))
"""


def evaluate(tmp_path_factory, candidates, *checks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_HOME", str(tmp_path_factory.mktemp("home")))
        top = make_repository(tmp_path_factory.mktemp("stats") / "repo", FILES)
        check = Check(command=("{python}", "-m", "pytest", "-q", "tests/"), must_pass=REQUIRED)
        problem = CodeProblem(
            "stats",
            editable=("**",),
            python=sys.executable,
            env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            check=(check, *checks),
            folder=top,
        )
        settings = ArenaSettings(unsandboxed=True, timing="none", audit=False)
        evaluation = anyio.run(partial(evaluate_candidates, problem, candidates, settings=settings))
        return {judgement.name: judgement for judgement in evaluation.judgements}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    texts = {name: {"src/stats.py": text} for name, text in RUNNING.items()}
    texts |= PROTECTED | {"any": {"src/stats.py": ANYTHING}}
    candidates = [Candidate(name, files=files) for name, files in texts.items()]
    return evaluate(tmp_path_factory, candidates)


@pytest.mark.parametrize("name", PROTECTED)
def test_files_that_decide_about_tests_can_t_be_changed(judged, name):
    assert judged[name].verdict == Verdict.REJECTED
    assert judged[name].rejection.reason == Reason.OUTSIDE


@pytest.mark.parametrize("name", RUNNING)
def test_a_must_pass_test_that_did_not_run_and_pass_rejects(judged, name):
    assert judged[name].verdict == Verdict.REJECTED, judged[name]


def test_a_fix_that_only_looks_equal_passes_and_the_verdict_says_that_it_rests_on_tests(judged):
    judgement = judged["any"]
    assert judgement.verdict == Verdict.PASSED
    assert judgement.basis == Basis.TESTS

"""Builds that run candidates' code: what they leave behind, and what they prove."""

import pytest
from repository_kit import make_repository

from fairtrial import Check, CodeProblem
from fairtrial.arena import ArenaSettings, Candidate, FileState, evaluate_candidates_sync
from fairtrial.arena.checks import command_check as commands
from fairtrial.core import StudyError
from fairtrial.sandbox import Limits

MODULE = "def one():\n    return 1\n"
WRONG = MODULE.replace("1", "2")
TEST = "import mod\nassert mod.one() == 1\n"
IMPORT = ("{python}", "-c", "import mod")
# Done in the build alone: later it would be found to have changed files during a check.
FORGE = """
import pathlib
test = pathlib.Path("tests/test_mod.py")
if "== 1" in test.read_text():
    test.write_text("import mod\\nassert mod.one() == 2\\n")
"""
GENERATE = """
import pathlib
grammar, parser = pathlib.Path("src/grammar.py"), pathlib.Path("src/parser.py")
if parser.read_text() != grammar.read_text():
    parser.write_text(grammar.read_text())
"""

COMPILE = """
import pathlib, sys
if "2" in pathlib.Path("src/mod.py").read_text():
    sys.exit(f"warned{9_000 * '.'}\\nmod.py: error: 2\\n{9_000 * '.'}given up")
"""


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(commands, "BASE_RUNS", 1)  # what runs differ in is no matter here


def make(tmp_path, files, **fields):
    """A problem whose only check is a script of the repository's."""
    files = {"src/mod.py": MODULE, "tests/test_mod.py": TEST, **files}
    fields = {"editable": ("src/**",), "import_roots": ("src",), **fields}
    return CodeProblem(
        "built",
        folder=make_repository(tmp_path / "repo", files),
        check=(Check(command=("{python}", "tests/test_mod.py")),),
        limits=Limits(memory_mb=512),
        sandbox="plain",
        **fields,
    )


def judge(problem, **files):
    """What one candidate comes to: these files of src, without their endings."""
    return judge_each(problem, files)[0]


def judge_each(problem, *given):
    """What each of several comes to."""
    candidates = [
        Candidate(
            f"c{number}",
            files={f"src/{name}.py": FileState(text.encode()) for name, text in files.items()},
        )
        for number, files in enumerate(given)
    ]
    settings = ArenaSettings(
        timing="none", unsandboxed=True, warm=False, lock_folder=problem.folder.parent
    )
    return evaluate_candidates_sync(problem, candidates, settings=settings).judgements


def test_a_build_that_changes_tests_is_tampering(tmp_path):  # 19
    judgement = judge(make(tmp_path, {}, build=IMPORT), mod=WRONG + FORGE)
    assert judgement.rejection.reason == "tampering"
    assert judgement.rejection.message == "build: it changed tests/test_mod.py while it ran"


def test_a_build_that_deletes_tests_is_tampering(tmp_path):  # 19
    delete = "import os\nos.unlink('tests/data.txt')\n"
    problem = make(tmp_path, {"tests/data.txt": "12"}, build=IMPORT)
    assert judge(problem, mod=MODULE + delete).rejection.reason == "tampering"


def test_a_build_may_write_tracked_files_anew_and_they_are_judged(tmp_path):  # 24
    files = {
        "src/grammar.py": MODULE,
        "src/parser.py": MODULE,
        "src/mod.py": "from parser import one\n",
        "generate.py": GENERATE,
    }
    problem = make(tmp_path, files, build=("{python}", "generate.py"))
    right, wrong = judge_each(
        problem, {"grammar": MODULE.replace("1", "2 - 1")}, {"grammar": WRONG}
    )
    assert right.verdict == "passed"
    assert wrong.rejection.reason == "different results"


def test_what_the_bases_build_does_to_tests_is_no_tampering(tmp_path):
    build = ("sh", "-c", "cp src/mod.py tests/copy.txt")
    problem = make(tmp_path, {"tests/copy.txt": MODULE}, build=build)
    assert judge(problem, mod=MODULE.replace("1", "2 - 1")).verdict == "passed"


def test_a_build_may_write_what_a_candidate_may_change(tmp_path):  # 24
    problem = make(
        tmp_path,
        {"tests/names.txt": ""},
        build=("sh", "-c", "! grep -q 2 src/mod.py || cp src/mod.py tests/names.txt"),
        editable=("src/**", "tests/names.txt"),
        unprotect=("tests/names.txt",),
    )
    assert judge(problem, mod=MODULE.replace("1", "2 - 1")).verdict == "passed"


def test_a_base_that_can_not_be_built_is_refused(tmp_path):
    problem = make(tmp_path, {}, build=("sh", "-c", "echo so it goes >&2; exit 3"))
    with pytest.raises(StudyError, match=r"base can't be built: .* exited with 3: so it goes"):
        judge(problem, mod=WRONG)


def test_a_build_has_its_own_time(tmp_path):
    # Next to no time, unless somebody wants to rest: the base's own build is held to it as well.
    build = ("sh", "-c", "! grep -q rest src/mod.py || exec sleep 60")
    problem = make(tmp_path, {}, build=build, build_timeout_s=1.0)
    rejection = judge(problem, mod=MODULE + "rest = True\n").rejection
    assert rejection.reason == "build"
    assert "longer than 1 s" in rejection.message


def test_a_build_that_imports_the_project_does_not_prove_that_the_check_does(tmp_path):  # 12
    problem = make(
        tmp_path,
        {"copy/mod.py": MODULE},
        build=("sh", "-c", "PYTHONPATH=src {python} -c 'import mod'"),
        import_roots=("copy",),
    )
    with pytest.raises(StudyError, match=r"check\[0\] passes although every editable file raises"):
        judge(problem, mod=WRONG)


def test_files_to_be_compiled_must_be_compiled(tmp_path):  # 12
    problem = make(tmp_path, {"src/fast.c": "int one(void) { return 1; }\n"})
    with pytest.raises(StudyError, match=r"no editable file can be compiled \(e.g. src/fast.c\)"):
        judge(problem, mod=WRONG)


def test_a_build_that_fails_proves_that_files_are_compiled(tmp_path):  # 12
    build = ("sh", "-c", "! grep '#error' src/fast.c")
    problem = make(tmp_path, {"src/fast.c": "int one(void) { return 1; }\n"}, build=build)
    assert judge(problem, mod=MODULE.replace("1", "2 - 1")).verdict == "passed"


def test_a_build_says_what_a_compiler_said_amidst_all_the_noise(tmp_path):  # 19
    problem = make(tmp_path, {"build.py": COMPILE}, build=("{python}", "build.py"))
    rejection = judge(problem, mod=WRONG).rejection
    assert rejection.reason == "build"
    message = rejection.failures[0].message
    assert len(message) < 6_000
    assert message.startswith("warned")
    assert "\nmod.py: error: 2\n" in message
    assert message.endswith("given up")

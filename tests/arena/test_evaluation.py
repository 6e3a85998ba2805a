"""From a problem and candidates to verdicts, with real tests in real sandboxes."""

import sys

import pytest
from arena_kit import whole
from repository_kit import fingerprint, make_repository, write_files

from fairtrial.arena import (
    ArenaSettings,
    Basis,
    Benchmark,
    Candidate,
    Check,
    CodeProblem,
    Reason,
    Verdict,
    evaluate_candidates_sync,
    read_candidate,
)
from fairtrial.arena.checks import command_check as commands, pytest_check as tests
from fairtrial.arena.slots.pool_folders import find_pool_folders
from fairtrial.core import LabError, StudyError
from fairtrial.core.events import Phase
from fairtrial.sandbox import warm_start
from fairtrial.sandbox.selection import FULL_SANDBOXES, try_sandbox

HAS_SANDBOX = not all(try_sandbox(sandbox) for sandbox in FULL_SANDBOXES)
needs_sandbox = pytest.mark.skipif(not HAS_SANDBOX, reason="no full sandbox works here")
MODULE = """
def smallest(numbers, count):
    return sorted(numbers)[:count]
"""
FILES = {
    "src/few/__init__.py": "from few.core import smallest\n",
    "src/few/core.py": MODULE,
    "src/few/unused.py": "X = 1\n",
    "tests/test_few.py": (
        "import pytest\n"
        "from few import smallest\n\n"
        "def test_two():\n    assert smallest([3, 1, 2], 2) == [1, 2]\n\n"
        "def test_none():\n    assert smallest([3, 1, 2], 0) == []\n\n"
        "@pytest.mark.parametrize('size', [1, 5])\n"
        "def test_all(size):\n    assert smallest(range(size), size) == list(range(size))\n"
    ),
    "inputs/make.py": (
        "def numbers(rng):\n"
        "    return ([rng.randrange(9) for _ in range(30)], rng.randrange(2, 7)), {}\n"
    ),
    ".gitignore": "__pycache__/\n",
}
CHECKS = (
    Check(command=("{python}", "-m", "pytest", "-q", "tests/")),
    Check(function="few:smallest", inputs="inputs/make.py:numbers", cases=10),
)
PRETEND = """
import sys, types
fake = sys.modules["fake"] = types.ModuleType("fake")
fake.__file__ = __file__.replace("core.py", "unused.py")
"""
REWRITE = """
import pathlib
for test in pathlib.Path.cwd().glob("tests/*.py"):
    before = test.read_text()
    test.write_text("def test_two(): pass\\ndef test_none(): pass\\n")
    test.write_text(before)
"""


def core(name, text):
    return whole(name, text, "src/few/core.py")


CANDIDATES = {
    "right": core("right", "import heapq\n\ndef smallest(numbers, count):\n"
                  "    return heapq.nsmallest(count, numbers)\n"),
    "right again": core("right again", "import heapq\n\n\ndef smallest(numbers, count):\n"
                        "    '''The same.'''\n    return heapq.nsmallest(count,  numbers)\n"),
    "comment": core("comment", MODULE + "# nothing else\n"),
    "wrong": core("wrong", MODULE.replace("[:count]", "[:count - 1]")),
    "cunning": core("cunning", MODULE.replace("sorted(numbers)", "sorted(set(numbers))")),
    "crash": core("crash", "import os\n\ndef smallest(numbers, count):\n    os.abort()\n"),
    "leaves": core("leaves", "import os\n\nos._exit(0)\n"),
    "tampers": core("tampers", REWRITE + MODULE),
    "unused": Candidate("unused", files={
        **core("", "import heapq\n\ndef smallest(numbers, count):\n"
               "    return list(heapq.nsmallest(count, numbers))\n").files,
        **whole("", "X = 2\n", "src/few/unused.py").files,
    }),
    "pretends": Candidate("pretends", files={
        **core("", PRETEND + MODULE).files, **whole("", "X = 3\n", "src/few/unused.py").files,
    }),
    "outside": whole("outside", "def test_two(): pass\n", "tests/test_few.py"),
    "no diff": Candidate("no diff", diff=b"--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-x\n+y\n"),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory):
    """Nobody else's slots, and one run of the base: what its runs differ in is no matter here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_HOME", str(tmp_path_factory.mktemp("home")))
        for module in (commands, tests):
            patch.setattr(module, "BASE_RUNS", 1)
        yield


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = make_repository(tmp_path_factory.mktemp("few") / "repo", FILES)
    write_files(top, {"src/few/unused.py": "X = 1  # edited, and not committed\n"})
    return top


def make_problem(top, **changes):
    given = {
        "editable": ("src/**/*.py",),
        "check": CHECKS,
        "python": sys.executable,
        # Loading the plug-ins that happen to be installed takes longer than all the rest.
        "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    }
    return CodeProblem("few", folder=top, **(given | changes))


@pytest.fixture(scope="module")
def forks():
    """What was forked from a warm server, by its first words."""
    found = []
    fork = warm_start.WarmServer.fork

    async def counted(self, order, descriptors):
        found.append(order["argv"][1:3])
        await fork(self, order, descriptors)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm_start.WarmServer, "fork", counted)
        yield found


@pytest.fixture(scope="module")
def evaluations(top, tmp_path_factory, forks):
    """All candidates at once: warm, and cold."""
    before = fingerprint(top)
    settings = {"unsandboxed": not HAS_SANDBOX, "lock_folder": tmp_path_factory.mktemp("lock")}
    found = []
    for is_warm in (True, False):
        if not is_warm:
            count = len(forks)
        arena = ArenaSettings(timing="none", warm=is_warm, **settings)
        given = list(CANDIDATES.values())
        found.append(evaluate_candidates_sync(make_problem(top), given, slots=3, settings=arena))
    assert len(forks) == count
    assert fingerprint(top) == before  # 1: whatever ran, the user's tree is as it was
    return found


@pytest.fixture(scope="module")
def judged(evaluations):
    return dict(zip(CANDIDATES, evaluations[0].judgements, strict=True))


def test_results_come_in_input_order(evaluations):  # 17
    assert [judgement.name for judgement in evaluations[0].judgements] == list(CANDIDATES)


def test_a_right_candidate_passes_and_its_basis_is_reported(judged):  # 22
    assert (judged["right"].verdict, judged["right"].basis) == (Verdict.PASSED, Basis.COMPARED)
    assert judged["right"].check_s > 0
    assert judged["right"].peak_rss_mb > 1


def test_duplicates_inherit(judged):  # 23
    assert judged["right again"].duplicate_of == "right"
    assert judged["right again"].verdict == Verdict.PASSED
    assert judged["comment"].duplicate_of == "base"
    assert judged["comment"].verdict == Verdict.PASSED


def test_a_wrong_candidate_is_rejected_with_the_failures(judged):  # 19
    rejection = judged["wrong"].rejection
    assert rejection.reason == Reason.TESTS
    assert [failure.what for failure in rejection.failures] == [
        "tests/test_few.py::test_two",
        "tests/test_few.py::test_none",
        "tests/test_few.py::test_all[1]",
        "tests/test_few.py::test_all[5]",
    ]
    assert "[1] == [1, 2]" in rejection.failures[0].message


def test_errors_that_tests_miss_are_found_by_comparison_with_the_base(judged):  # 20, 21
    rejection = judged["cunning"].rejection
    assert rejection.reason == Reason.DIFFERENT
    assert rejection.failures[0].check == "check[1]"
    assert rejection.failures[0].differences
    assert rejection.failures[0].what.startswith("few:smallest, case ")


@pytest.mark.parametrize("name", ["crash", "leaves"])
def test_a_process_that_dies_or_leaves_is_a_crash(judged, name):  # 17, 19
    assert judged[name].rejection.reason == Reason.CRASH


def test_tests_that_are_rewritten_and_restored_at_run_time_are_tampering(judged):  # 19
    assert judged["tampers"].rejection.reason == Reason.TAMPERING
    assert "tests/test_few.py" in judged["tampers"].rejection.message


def test_a_changed_file_that_was_never_imported_is_reported(judged):  # 13
    assert judged["unused"].verdict == Verdict.PASSED
    assert judged["unused"].not_exercised == ("src/few/unused.py",)
    assert judged["right"].not_exercised == ()


def test_a_file_that_only_looks_imported_was_not(judged):
    assert judged["pretends"].verdict == Verdict.PASSED
    assert judged["pretends"].not_exercised == ("src/few/unused.py",)


def test_paths_and_diffs_that_can_not_be_used(judged):  # 24
    assert judged["outside"].rejection.reason == Reason.OUTSIDE
    assert judged["no diff"].rejection.reason == Reason.UNUSABLE


def test_warm_and_cold_give_the_same_verdicts(evaluations):
    warm, cold = evaluations
    assert not [note for note in (*warm.notes, *cold.notes) if "cold" in note]

    def essence(each):
        rejection = each.rejection
        failed = [failure.what for failure in rejection.failures] if rejection else []
        reason = rejection.reason if rejection else None
        places = [] if reason == Reason.DIFFERENT else failed  # inputs are other ones each time
        return each.name, each.digest, each.verdict, each.basis, each.duplicate_of, reason, places

    assert [essence(judgement) for judgement in warm.judgements] == [
        essence(item) for item in cold.judgements
    ]


@needs_sandbox
def test_warm_is_really_used_where_it_can_be(evaluations, forks):
    assert len(forks) > len(CANDIDATES)  # and none of them when all was to be cold
    assert ["-m", "pytest"] in forks


def test_nothing_is_left_on_disk(evaluations):  # 7, 8
    assert find_pool_folders() == []


# -- which code runs --


def evaluate_base(top, tmp_path, **changes):
    settings = ArenaSettings(
        timing="none", unsandboxed=not HAS_SANDBOX, lock_folder=tmp_path, warm=False
    )
    return evaluate_candidates_sync(make_problem(top, **changes), [], settings=settings)


def test_a_copy_elsewhere_that_wins_over_the_slot_is_found_by_the_canary(top, tmp_path):  # 12
    project = make_repository(
        tmp_path / "repo",
        {
            **FILES,
            "vendor/few/__init__.py": MODULE,
            "tests/conftest.py": "import sys\nsys.path.insert(0, 'vendor')\n",
        },
    )
    with pytest.raises(StudyError) as refused:
        evaluate_base(project, tmp_path, check=CHECKS[:1])
    assert "check[0]" in str(refused.value)
    assert "vendor/few/__init__.py" in str(refused.value)


def test_a_check_that_never_imports_what_is_editable_is_refused(top, tmp_path):  # 12
    with pytest.raises(StudyError, match="although every editable file"):
        evaluate_base(top, tmp_path, editable=("src/few/unused.py",), check=CHECKS[1:])


def test_a_command_that_does_not_run_the_code_may_stand_beside_one_that_does(top, tmp_path):
    there = Check(command=("test", "-f", "src/few/core.py"))
    assert evaluate_base(top, tmp_path, check=(CHECKS[1], there)).judgements == ()


def test_a_command_alone_must_run_the_code(top, tmp_path):
    with pytest.raises(StudyError, match="although every editable file"):
        evaluate_base(top, tmp_path, check=(Check(command=("test", "-f", "src/few/core.py")),))


# -- builds --


def test_a_build_runs_for_each_candidate_and_its_files_belong_to_the_slot(tmp_path):  # 24
    generate = "import pathlib; n = pathlib.Path('src/n.txt').read_text(); int(n); "
    generate += "pathlib.Path('src/made.py').write_text(f'N = {n}')"
    project = make_repository(
        tmp_path / "repo",
        {
            "src/n.txt": "3\n",
            "src/one.py": "from made import N\n",
            "tests/test_n.py": "import one\n\ndef test_n():\n    assert one.N < 10\n",
            ".gitignore": "made.py\n__pycache__/\n",
        },
    )
    problem = make_problem(
        project,
        editable=("src/*",),
        build=("{python}", "-c", generate),
        # What the build made is there for the second one, too.
        check=(CHECKS[0], Check(command=("{python}", "-c", "import one; assert one.N"))),
    )
    given = [
        whole("small", "4\n", "src/n.txt"),
        whole("large", "40\n", "src/n.txt"),
        whole("text", "four\n", "src/n.txt"),
    ]
    settings = ArenaSettings(timing="none", unsandboxed=not HAS_SANDBOX, lock_folder=tmp_path)
    done = evaluate_candidates_sync(problem, given, settings=settings)
    assert not any("cold" in note for note in done.notes)
    small, large, text = done.judgements
    assert small.verdict == Verdict.PASSED
    assert large.rejection.reason == Reason.TESTS
    assert text.rejection.reason == Reason.BUILD
    assert "ValueError" in text.rejection.failures[0].message


# -- without a sandbox --


def test_plain_has_to_be_asked_for_and_says_what_it_can_not_enforce(top, tmp_path):  # 11
    problem = make_problem(top, sandbox="plain", check=CHECKS[1:])
    with pytest.raises(LabError, match="--unsandboxed"):
        evaluate_candidates_sync(
            problem, [], settings=ArenaSettings(timing="none", lock_folder=tmp_path)
        )
    settings = ArenaSettings(timing="none", lock_folder=tmp_path, unsandboxed=True)
    done = evaluate_candidates_sync(
        problem, [CANDIDATES["right"], CANDIDATES["wrong"]], settings=settings
    )
    assert [judgement.verdict for judgement in done.judgements] == [
        Verdict.PASSED,
        Verdict.REJECTED,
    ]
    assert done.sandbox == "plain"
    assert any(note.startswith("not enforced: ") for note in done.notes)


# -- what is given --


def test_candidates_may_be_given_by_path(top, tmp_path):
    folder = tmp_path / "heap"
    write_files(
        folder, {"src/few/core.py": MODULE.replace("sorted(numbers)", "sorted(tuple(numbers))")}
    )
    settings = ArenaSettings(timing="none", unsandboxed=not HAS_SANDBOX, lock_folder=tmp_path)
    problem = make_problem(top, check=CHECKS[1:])
    done = evaluate_candidates_sync(
        problem, [str(folder), folder, read_candidate(folder)], settings=settings
    )
    assert [judgement.name for judgement in done.judgements] == ["heap"] * 3
    assert [item.duplicate_of for item in done.judgements] == [None, "heap", "heap"]


def test_nothing_is_timed_where_no_candidate_can_be_used(top, tmp_path):
    (tmp_path / "garbage.patch").write_text("this is no diff\n")
    phases = []
    settings = ArenaSettings(
        unsandboxed=not HAS_SANDBOX,
        lock_folder=tmp_path,
        emit=lambda event: phases.append(getattr(event, "phase", None)),
    )
    bench = Benchmark("few", call="few:smallest", inputs=CHECKS[1].inputs)
    problem = make_problem(top, check=CHECKS[1:], bench=(bench,))
    done = evaluate_candidates_sync(problem, [tmp_path / "garbage.patch"], settings=settings)
    assert done.judgements[0].rejection.reason == Reason.UNUSABLE
    assert Phase.BASE_CHECKS in phases
    assert Phase.BASE_TIMING not in phases

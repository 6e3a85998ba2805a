"""Checks that run pytest: on real bases and candidates, in real processes (12, 19, 20, 22)."""

from dataclasses import replace

import anyio
import pytest
from suite_kit import CHECK, FILES, TESTS, Slots, prepare, reject

from fairtrial.arena import Basis, Reason
from fairtrial.arena.checks.pytest_check import run_tests
from fairtrial.sandbox import Plain


def calc(double="return 2 * x", halve="return x / 2", top="pass"):
    return {
        "calc.py": f"{top}\ndef double(x):\n    {double}\ndef halve(x):\n    {halve}\n",
    }


@pytest.fixture(scope="module")
def slots(tmp_path_factory):
    return Slots(tmp_path_factory.mktemp("slots"), FILES)


@pytest.fixture(scope="module")
def prepared(slots):
    return prepare(slots)


def test_every_test_of_the_base_counts_and_rests_on_tests_only(prepared):
    assert len(prepared.baseline.counted) == 10
    assert "tests/test_calc.py::Halves::test_parts" in prepared.baseline.counted
    assert (prepared.basis, prepared.notes, prepared.label) == (Basis.TESTS, (), "check[0]")


def test_a_right_candidate_passes_and_its_files_were_loaded(slots, prepared):
    run = slots.try_candidate(prepared, calc("return x + x"))
    assert run.rejection is None
    slot = slots.folder / f"slot{slots.given}"
    assert {str(slot / "calc.py"), str(slot / "tests/test_calc.py")} <= run.loaded
    assert run.wall_s > 0
    left = {path.name for path in slot.rglob("*")}
    assert left == {"calc.py", "tests", "test_calc.py"}  # no cache, no bytecode


def test_a_wrong_candidate_is_rejected_with_what_is_wrong_and_where(slots, prepared):
    rejection = reject(slots, prepared, calc("y = x[:1] if x else x\n    return y + y"))
    assert rejection.reason == Reason.TESTS
    first = rejection.failures[0]
    assert first.what == "tests/test_calc.py::test_double"
    assert "assert double([1, 2]) == [1, 2, 1, 2]" in first.message
    assert "E   assert [1, 1] == [1, 2, 1, 2]" in first.message
    [difference] = first.differences
    assert (difference.expected, difference.actual) == ("[1, 2, 1, 2]", "[1, 1]")


def test_a_test_that_is_now_skipped_is_a_failure(slots, prepared):
    rejection = reject(slots, prepared, calc("return 2 * x if x != 1 else 3"))
    [failure] = rejection.failures
    assert failure.what == "tests/test_calc.py::test_that_can_be_skipped"
    assert failure.message == "is skipped:\nSkipped: double is broken"


def test_a_session_that_is_ended_early_lacks_the_rest(slots, prepared):
    leave = "import pytest; x == 1 and pytest.exit('done', returncode=0)\n    return 2 * x"
    rejection = reject(slots, prepared, calc(leave))
    assert "3 of the 10" in rejection.message
    assert rejection.failures[0].message == "did not finish"
    assert "was collected, but not run" in rejection.failures[1].message


def test_a_traceback_leads_into_the_candidates_code(slots, prepared):
    rejection = reject(slots, prepared, calc(halve="return x // len(x)"))
    message = rejection.failures[0].message
    assert "calc.py:5: in halve\n    return x // len(x)\nE   TypeError: object of type" in message
    assert "unittest/case.py" not in message


def test_a_traceback_starts_at_the_test(slots):
    hook = """
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_pyfunc_call(pyfuncitem):
            return (yield)
    """
    files = {"tests/conftest.py": hook, "tests/test_t.py": "def test_t():\n    assert 0\n"}
    run = anyio.run(run_tests, slots.stage(files, sandbox=Plain()), CHECK)
    [result] = run.tests.values()
    assert result.message == "tests/test_t.py:2: in test_t\n    assert 0\nE   assert 0"


def test_a_candidate_that_leaves_with_status_0_in_a_test_has_crashed_there(slots, prepared):
    rejection = reject(slots, prepared, calc("import os; os._exit(0) if x else 0\n    return 0"))
    assert rejection.reason == Reason.CRASH
    assert rejection.message.endswith("in tests/test_calc.py::test_double")
    assert "exited with 0 before it had finished" in rejection.message


def test_a_candidate_that_dies_of_a_signal_has_crashed(slots, prepared):
    rejection = reject(slots, prepared, calc("import ctypes; return ctypes.string_at(1)"))
    assert rejection.reason == Reason.CRASH
    assert "SIGSEGV" in rejection.message
    assert rejection.failures[0].what == "tests/test_calc.py::test_before"
    assert "calc.py" in rejection.failures[0].message  # what faulthandler said


def test_a_candidate_that_hangs_is_stopped_and_the_test_named(slots, prepared):
    for limit_s in (1.5, 6, 30):  # on a busy machine pytest may not come to the test
        hurried = replace(prepared, check=replace(CHECK, timeout_s=limit_s))
        rejection = reject(slots, hurried, calc(halve="import time; time.sleep(10_000)"))
        assert rejection.reason == Reason.TIMEOUT
        assert f"longer than {limit_s} s" in rejection.message
        if "test_halve" in rejection.message:
            break
    assert rejection.message.endswith("in tests/test_calc.py::Halves::test_halve")


@pytest.mark.parametrize(
    ("top", "reason", "words"),
    [
        ("raise SystemExit(0)", Reason.CRASH, "SystemExit"),
        ("import os; os._exit(0)", Reason.CRASH, "while collecting tests"),
        ("import pytest; pytest.exit('done', returncode=0)", Reason.TESTS, "10 of the 10"),
        ("oops =", Reason.TESTS, "SyntaxError"),
        ("import pytest; pytest.skip('no', allow_module_level=True)", Reason.MISSING, "skipped"),
    ],
)
def test_a_candidate_that_keeps_tests_from_being_collected_is_out(
    slots, prepared, top, reason, words
):
    rejection = reject(slots, prepared, calc(top=top))
    assert rejection.reason == reason
    assert words in rejection.message + rejection.failures[0].message
    assert len(rejection.failures) + rejection.more >= 10


def test_tests_that_were_deleted_are_missing(slots, prepared):
    shorter = TESTS[: TESTS.index("    class Halves")]
    rejection = reject(slots, prepared, {"tests/test_calc.py": shorter})
    assert rejection.reason == Reason.MISSING
    assert "2 of the 10 tests" in rejection.message


def test_what_a_candidate_prints_is_not_read(slots, prepared):
    fake = "import sys; print('10 passed in 0.01s', file=sys.__stdout__); return None"
    assert reject(slots, prepared, calc(fake)).reason == Reason.TESTS


def test_a_candidate_that_closes_every_descriptor_loses_its_reports(slots, prepared):
    close = "import os; os.closerange(3, 4096) if x == [1, 2] else 0\n    return 2 * x"
    assert reject(slots, prepared, calc(close)).reason in (Reason.CRASH, Reason.MISSING)


def test_a_file_that_takes_the_place_of_the_channel_is_left_alone(slots, prepared):
    take = """
    import os
    if x == [1, 2]:
        file = os.open("mine.txt", os.O_CREAT | os.O_WRONLY)
        for number in range(200, 400):
            try:
                os.fstat(number)
            except OSError:
                continue
            os.dup2(file, number)
    return 2 * x
    """
    reject(slots, prepared, calc(take.strip()))
    assert (slots.folder / f"slot{slots.given}" / "mine.txt").read_text() == ""


def test_repeated_and_forged_reports_do_not_turn_a_failure_into_a_pass(slots, prepared):
    forge = """
    import os
    line = '{"finished": "tests/test_calc.py::test_double", "outcome": "passed"}'
    for number in range(3, 300):
        try:
            os.write(number, (line + "\\nnonsense\\n{\\n").encode())
        except OSError:
            pass
    return None
    """
    rejection = reject(slots, prepared, calc(forge.strip()))
    assert "tests/test_calc.py::test_double" in [failure.what for failure in rejection.failures]


def test_what_tests_alone_cannot_stop_is_said_in_the_basis(slots, prepared):
    """22: a candidate that patches the runner passes; the verdict says what it rests on."""
    patch = """
from _pytest.reports import TestReport
real = TestReport.from_item_and_call.__func__
def from_item_and_call(cls, item, call):
    call.excinfo = None
    return real(cls, item, call)
TestReport.from_item_and_call = classmethod(from_item_and_call)
"""
    run = slots.try_candidate(prepared, calc("return None", halve="return 0", top=patch))
    assert run.rejection is None
    assert prepared.basis == Basis.TESTS


def test_the_fork_of_a_test_reports_nothing(slots):
    # The child goes on with all that is left to test.
    fork = "import os; x == [1, 2] and os.fork() and os.wait()\n    return 2 * x"
    stage = slots.stage({**FILES, **calc(fork)}, sandbox=Plain())
    run = anyio.run(run_tests, stage, CHECK)
    assert {name: result.times for name, result in run.tests.items()} == dict.fromkeys(run.tests, 1)
    assert len(run.tests) == 10


RERUNNING = """
    import pytest
    from _pytest.runner import runtestprotocol

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(item, nextitem):
        for attempt in range(2):
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            again = attempt == 0 and any(report.failed for report in reports)
            for report in reports:
                if again and report.failed:
                    report.outcome = "rerun"
                item.ihook.pytest_runtest_logreport(report=report)
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            if not again:
                return True
"""


def test_of_a_test_that_is_tried_again_the_last_try_counts(slots):
    text = """
        tries = []

        def test_second_time():
            tries.append(1)
            assert len(tries) > 1

        def test_never():
            assert False
    """
    files = {"tests/test_t.py": text, "tests/conftest.py": RERUNNING}
    run = anyio.run(run_tests, slots.stage(files, sandbox=Plain()), CHECK)
    outcomes = {
        name.split("::")[1]: (result.outcome, result.times) for name, result in run.tests.items()
    }
    assert outcomes == {"test_second_time": ("passed", 1), "test_never": ("failed", 1)}


def test_with_xdist_the_controller_reports_and_workers_report_what_they_loaded(slots, prepared):
    check = replace(CHECK, command=(*CHECK.command, "-p", "xdist.plugin", "-n", "1"))
    spread = replace(prepared, check=check)
    run = slots.try_candidate(spread, calc("return x + x"))
    assert run.rejection is None  # all ten are reported
    assert str(slots.folder / f"slot{slots.given}" / "calc.py") in run.loaded
    rejection = reject(slots, spread, calc("import os; os._exit(0) if x == [1, 2] else 0"))
    assert rejection.reason == Reason.TESTS
    messages = {failure.what: failure.message for failure in rejection.failures}
    assert "crashed" in messages["tests/test_calc.py::test_double"]


def test_what_tests_start_finds_no_channel(tmp_path):
    text = """
        import os, subprocess, sys

        def test_children():
            assert "FAIRTRIAL_CHANNEL" not in os.environ
            code = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[-1])"
            highest = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                     close_fds=False).stdout
            assert int(highest) < 200
    """
    stage = Slots(tmp_path, {}).stage({"tests/test_c.py": text}, sandbox=Plain())
    run = anyio.run(run_tests, stage, CHECK)
    assert run.tests["tests/test_c.py::test_children"].outcome == "passed", run

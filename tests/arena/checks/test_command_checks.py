"""Checks that run other commands than pytest: exit status, and output that we compare (19, 22)."""

from dataclasses import replace

import anyio
import pytest
from hypothesis import given, strategies as st
from suite_kit import Slots

from fairtrial.arena import Basis, Check, Reason
from fairtrial.arena.checks import command_check as commands
from fairtrial.arena.checks.command_check import find_difference, prepare_command
from fairtrial.arena.checks.exit_text import in_one_line
from fairtrial.core import StudyError

RUN = Check(command=("{python}", "tool.py"))
COMPARE = replace(RUN, compare="output")
TOOL = "import sys; print('one'); print('two'); print('noise', file=sys.stderr)"


def prepare(slots, check, base_runs=1):
    """The check as a trial; the base runs once, unless what its runs differ in matters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands, "BASE_RUNS", base_runs)
        return anyio.run(prepare_command, "check[1]", check, slots)


def refused(folder, check, text, **more):
    with pytest.raises(StudyError) as caught:
        prepare(Slots(folder, {"tool.py": text}), check, **more)
    return str(caught.value)


@pytest.fixture
def slots(tmp_path):
    return Slots(tmp_path, {"tool.py": TOOL})


def test_an_exit_status_alone_is_the_weaker_basis(slots):
    trial = prepare(slots, RUN)
    assert (trial.basis, trial.label, trial.notes) == (Basis.EXIT_STATUS, "check[1]", ())
    run = slots.try_candidate(trial, {"tool.py": "print('whatever')"})
    assert run.rejection is None
    assert run.wall_s > 0


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        ("raise SystemExit('went wrong')", Reason.DIFFERENT, "exited with 1"),
        ("import os; os.kill(os.getpid(), 6)", Reason.CRASH, "died of SIGABRT"),
    ],
)
def test_a_command_that_no_longer_exits_with_0_is_out(slots, text, reason, words):
    rejection = slots.try_candidate(prepare(slots, RUN), {"tool.py": text}).rejection
    assert rejection.reason == reason
    assert words in rejection.message
    [failure] = rejection.failures
    assert (failure.check, failure.what) == ("check[1]", "command")
    assert "went wrong" in failure.message or "went" not in text


def test_a_command_that_hangs_is_out(slots):
    trial = replace(prepare(slots, RUN), check=replace(RUN, timeout_s=0.5))
    text = {"tool.py": "import time; time.sleep(1e4)"}
    assert slots.try_candidate(trial, text).rejection.reason == Reason.TIMEOUT


def test_output_is_compared_by_us_to_the_byte(slots):
    trial = prepare(slots, COMPARE)
    assert trial.basis == Basis.COMPARED
    same = {"tool.py": "import os; os.write(1, b'one\\ntwo\\n')"}
    assert slots.try_candidate(trial, same).rejection is None
    for text, expected, actual in [
        ("print('one'); print('zwei')", "two\n", "zwei\n"),
        ("print('one')", "two\n", "(the output ends here)"),
        ("print('one'); print('two', end='')", "two\n", "two"),
        ("import os; os.write(1, b'one\\n\\xff\\n')", "two\n", "\\xff\n"),
    ]:
        rejection = slots.try_candidate(trial, {"tool.py": text}).rejection
        assert rejection.reason == Reason.DIFFERENT
        [difference] = rejection.failures[0].differences
        assert difference.where == "line 2 of the output"
        assert (difference.expected, difference.actual) == (expected, actual)


def test_a_candidate_that_prints_without_end_is_out(slots, monkeypatch):
    monkeypatch.setattr(commands, "COMPARED_BYTES", 2**20)
    trial = prepare(slots, COMPARE)
    flood = {"tool.py": "print('one\\ntwo\\n' + 'x' * 3 * 2**20)"}
    rejection = slots.try_candidate(trial, flood).rejection
    assert rejection.reason == Reason.DIFFERENT
    assert "larger than 1 MB" in rejection.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise SystemExit('not today')", "exited with 1: not today"),
        ("import os; os.abort()", "died of SIGABRT"),
    ],
)
def test_a_base_that_fails_is_refused_with_what_it_said(tmp_path, text, words):
    message = refused(tmp_path, RUN, text)
    assert message.startswith("check[1]: on the unchanged base")
    assert words in message


def test_a_base_whose_output_varies_is_refused_for_comparison_only(tmp_path):
    text = "import os; print('same'); print('pid', os.getpid())"
    runs = commands.BASE_RUNS
    message = refused(tmp_path, COMPARE, text, base_runs=runs)
    assert "differs from run to run, in line 2" in message
    slots = Slots(tmp_path / "exit", {"tool.py": text})
    assert prepare(slots, RUN, base_runs=runs).basis == Basis.EXIT_STATUS


def test_a_base_that_prints_more_than_is_kept_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "COMPARED_BYTES", 2**20)
    assert "larger than 1 MB" in refused(tmp_path, COMPARE, "print('x' * 3 * 2**20)")


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_a_difference_is_found_if_and_only_if_there_is_one(expected, actual):
    found = find_difference(expected, actual)
    assert (found is None) == (expected == actual)


def test_of_a_long_line_the_place_that_differs_is_shown():
    found = find_difference(b"a" * 9000 + b"b" + b"c" * 9000, b"a" * 9000 + b"B" + b"c" * 9000)
    assert "aaabccc" in found.expected
    assert "aaaBccc" in found.actual
    assert len(found.expected) < 600


def test_what_a_program_said_last_has_no_gaps_in_messages():
    assert in_one_line(f"\n..{' ' * 62}[100%]\n  1 passed\n") == ".. [100%] | 1 passed"

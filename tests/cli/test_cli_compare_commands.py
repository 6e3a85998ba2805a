"""`fairtrial compare` without a problem: commands, and files of pytest-benchmark."""

import json
import shlex
import sys

import pytest

from fairtrial.arena import Comparison, Judgement, Verdict, commands, suites
from fairtrial.cli.compare_arguments import split_arguments
from fairtrial.core import StudyError

PYTHON = shlex.quote(sys.executable)


@pytest.fixture
def inside(run, tmp_path):
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--command", "nope-x", "--command", "true"], "there is no program 'nope-x'"),
        (["--command", "true", "--command", "sh -c 'exit 3'"], "exits with 3"),
        (["--command", "cat | wc", "--command", "true"], "add --shell"),
        (["--command", "true 'a", "--command", "true"], "no closing quotation"),
        (["--command", "true"], "two commands or more"),
        (["--command", "true", "--command", "true", "--prepare", "false"], "--prepare: 'false'"),
        (["--command", "true", "a", "b"], "can't be combined with a b"),
        (["--command", "sleep 9", "--command", "true", "--budget", "0.3"], "still running after"),
        (["main", ".", "--", "true"], "two commands need no repository"),
        (["--shell", "main", "."], "--shell is for a comparison of commands"),
    ],
)
def test_what_cannot_be_compared_gives_an_error_of_one_line(inside, run, arguments, expected):
    code, _, err = run("compare", *arguments)
    assert code == 2
    assert expected in err
    assert "Traceback" not in err


def test_commands_are_timed_against_the_first_by_time_and_memory(inside, run):
    small = f"{PYTHON} -S -c 1"
    large = f"{PYTHON} -S -c 'x = bytearray(60_000_000); import time; time.sleep(0.05)'"
    code, out, _ = run("compare", "--command", small, "--command", large, "--budget", "4", "--json")
    assert code == 0
    document = json.loads(out)
    (timing,) = document["timings"]
    assert document["verdict"] == "slower"
    assert timing["memory"]["verdict"] == "larger"
    assert timing["memory"]["interval"][0] > 2
    assert timing["cpu"]["interval"][0] <= timing["cpu"]["ratio"]


def test_failures_are_reported_and_may_be_ignored(inside, run):
    lines = ["--command", "sh -c 'exit 3'", "--command", "sh -c 'exit 4'"]
    code, out, _ = run("compare", *lines, "--ignore-failure", "--budget", "0.5")
    assert code == 0
    assert "exits with 4" in out


def test_shell_operators_in_quotes_are_no_operators():
    assert commands.CommandOptions().split("ls 'a|b'") == ("ls", "a|b")
    with pytest.raises(StudyError, match="shell"):
        commands.CommandOptions().split("ls a|b")


def test_two_files_of_pytest_benchmark_get_figures_and_no_verdict(inside, run):
    for name, seconds in (("a.json", 2e-3), ("b.json", 1e-3)):
        entry = {"fullname": "t.py::test_x", "stats": {"median": seconds}}
        (inside / name).write_text(json.dumps({"benchmarks": [entry]}))
    _, out, _ = run("compare", "a.json", "b.json", "--json")
    document = json.loads(out)
    assert document["verdict"] is None
    assert document["benchmarks"][0]["ratio"] == 2
    assert "no verdict" in document["notes"][0]


def test_what_is_written_can_be_read_again(inside, run):
    lines = ["--command", "true", "--command", "true"]
    run("compare", *lines, "--budget", "0.5", "--pytest-benchmark-json", "out.json")
    assert suites.is_pytest_json(inside / "out.json")
    assert len(json.loads((inside / "out.json").read_text())["benchmarks"]) == 1
    rows = suites.compare_files(inside / "out.json", inside / "out.json").rows
    assert [row[1] == row[2] for row in rows] == [True]


def test_a_comparison_without_a_measurement_is_judged_by_its_second_side():
    sides = (Judgement("a", "", Verdict.PASSED), Judgement("b", "", Verdict.PASSED))
    assert Comparison("p", *sides, None).judged.name == "b"


def test_a_folder_without_benchmarks_is_refused_with_what_a_suite_has(tmp_path):
    (tmp_path / "bench.py").write_text("def track_size():\n    return 1\n")
    with pytest.raises(StudyError, match=r"no suite of benchmarks is there.*time_"):
        split_arguments(["main", ".", str(tmp_path)])

"""`fairtrial evaluate`: what it prints, how it ends, and what its guide says of both."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

import fairtrial
from fairtrial.arena import (
    Basis,
    Difference,
    Estimate,
    Evaluation,
    Failure,
    Judgement,
    Measurement,
    Pair,
    Reason,
    Rejection,
    Timing,
    TotalCheck,
    TotalVerdict,
    Verdict,
    events as arena_events,
)
from fairtrial.arena.model.memory import MemoryResult, MemoryVerdict
from fairtrial.arena.model.timings import SlowInput
from fairtrial.cli import (
    evaluate,
    evaluate_progress as judging,
    verdict_rows,
    verdict_text as verdicts,
)
from fairtrial.cli.table import cell_width
from fairtrial.core import LabError
from fairtrial.core.events import Phase, PhaseStarted

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/evaluating.md").read_text("utf-8")
MODULE = "def double(number):\n    return number + number\n"
DIFF = """\
--- a/src/twice.py
+++ b/src/twice.py
@@ -1,2 +1,2 @@
 def double(number):
-    return number + number
+    return {}
"""
PROBLEM = """\
problem_id: twice
editable: ["src/*.py"]
check:
  - function: "twice:double"
    calls: calls.json
"""
FILES = {
    "src/twice.py": MODULE,
    "calls.json": '[{"args": [3], "kwargs": {}, "result": 6}]',
    "problem.yaml": PROBLEM,
    "tests/test_twice.py": "",
    "c/right.diff": DIFF.format("2 * number"),
    "c/folder/src/twice.py": MODULE.replace("number + number", "2*number  # the same"),
    "c/wrong.diff": DIFF.format("number"),
    "c/outside.diff": "--- /dev/null\n+++ b/tests/test_more.py\n@@ -0,0 +1 @@\n+X = 1\n",
    "c/nonsense.diff": "no diff\n",
    "c/nothing/src/twice.py": MODULE,
}
GIVEN = ["wrong.diff", "right.diff", "folder", "outside.diff", "nonsense.diff", "nothing"]
# As the issue that asked for it has them, and what came in addition.
KEYS = ["problem_id", "base", "sandbox", "candidates", "adequacy", "notes"]
CANDIDATE_KEYS = [
    "name", "digest", "verdict", "basis", "reason", "failures", "duplicate_of", "ratio",
    "interval", "sessions", "check_s", "bench_s", "peak_rss_mb", "not_exercised", "notes",
    "confidence", "adopt", "vetoes", "is_confirmed", "waited_s", "timings",
    "instructions", "total_checks",
]  # fmt: skip


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("evaluate")
    for path, text in FILES.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q", top], check=True, timeout=60)
    return top


@pytest.fixture(scope="module")
def call(top, tmp_path_factory):
    """The command as people start it, in the project's folder."""
    home = tmp_path_factory.mktemp("home")

    def call(*arguments, **variables):
        settings = {"FAIRTRIAL_HOME": str(home), "PYTHONIOENCODING": "utf-8", **variables}
        return subprocess.run(
            [sys.executable, "-m", "fairtrial", *arguments],
            cwd=top,
            env={**{k: v for k, v in os.environ.items() if k != "COLUMNS"}, **settings},
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )

    return call


@pytest.fixture(scope="module")
def printed(call):
    """All candidates, judged once: with --json and --keep-slots."""
    names = [f"c/{name}" for name in GIVEN]
    return call(
        "evaluate",
        "--check-only",
        "problem.yaml",
        *names,
        "--json",
        "--keep-slots",
        "--unsandboxed",
    )


@pytest.fixture(scope="module")
def told(printed):
    return json.loads(printed.stdout)


# -- JSON --


def test_json_has_the_promised_keys_in_their_order(printed, told):
    assert printed.returncode == 2  # one is no diff; the other verdicts don't matter
    assert list(told) == KEYS
    for each in told["candidates"]:
        assert list(each) == CANDIDATE_KEYS
    assert (told["problem_id"], len(told["base"])) == ("twice", 40)
    assert told["sandbox"] in ("bubblewrap", "namespaces", "plain")


def test_json_has_the_candidates_in_input_order_by_their_own_names(told):
    assert [each["name"] for each in told["candidates"]] == GIVEN
    assert {each["verdict"] for each in told["candidates"]} <= set(Verdict)
    assert [each["verdict"] for each in told["candidates"]] == [
        "rejected", "passed", "passed", "rejected", "rejected", "passed",
    ]  # fmt: skip
    assert [each["duplicate_of"] for each in told["candidates"]] == [
        None, None, "right.diff", None, None, "base",
    ]  # fmt: skip


def test_json_says_why_and_what_a_verdict_rests_on(told):
    wrong, right, _, outside, nonsense, _ = told["candidates"]
    assert (right["basis"], right["reason"], right["failures"]) == ("compared results", None, [])
    assert right["check_s"] > 0
    assert wrong["reason"].startswith("different results: 1 of 1 calls")
    (failure,) = wrong["failures"]
    assert (failure["check"], failure["what"]) == ("check[0]", "twice:double, case 1")
    assert failure["differences"] == [{"where": "result", "expected": "6", "actual": "3"}]
    assert outside["reason"].startswith("outside editable: tests/test_more.py")
    assert nonsense["reason"].startswith("unusable: ")
    for each in told["candidates"]:
        timing = ("ratio", "interval", "sessions", "bench_s")
        assert [each[key] for key in timing] == [None] * 4


def test_kept_slots_are_where_it_says_until_clean_removes_them(printed, call):
    (line,) = printed.stderr.splitlines()
    place = Path(re.fullmatch(r"the slots are in (.+); `fairtrial clean` removes them", line)[1])
    assert (place / "base" / "src" / "twice.py").read_text() == MODULE
    cleaned = json.loads(call("clean", "--json").stdout)
    assert [pool["path"] for pool in cleaned["pools"] if pool["removed"]] == [str(place)]
    assert not place.exists()


# -- text --


def test_text_is_a_line_for_each_candidate_with_steps_on_the_other_stream(call):
    given = ["c/wrong.diff", "c/right.diff"]
    done = call("evaluate", "--check-only", "problem.yaml", *given, "--unsandboxed", "--cold")
    assert done.returncode == 0
    header, rule, wrong, right = done.stdout.partition("\n\n")[0].splitlines()
    assert header.split() == ["candidate", "verdict", "why", "time"]
    assert set(rule) == {"─"}
    assert re.match(r"wrong\.diff  rejected  different results: .* is 3 +[\d.]+ s$", wrong)
    assert re.match(r"right\.diff  passed    basis: compared results +[\d.]+ s$", right)
    assert "result: expected 6, got 3" in done.stdout
    assert "\n1 passed, 1 rejected (base " in done.stdout
    assert "\x1b" not in done.stdout
    assert all(line.endswith(" ...") for line in done.stderr.splitlines())


def test_without_candidates_the_base_alone_is_checked(run, top, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    code, out, _ = run("evaluate", "--check-only", top / "problem.yaml", "--unsandboxed", "--cold")
    assert code == 0
    assert out.startswith("the base holds; there were no candidates (base ")


LONG = "tests/test_sorting.py::test_a_cycle_is_refused_with_its_nodes_and_all_the_rest"


def judgement(name="one.diff", reason=None, message="", failures=(), more=0, **changes):
    rejection = Rejection(reason, message, tuple(failures), more) if reason else None
    verdict = Verdict.REJECTED if reason else Verdict.PASSED
    if reason == Reason.EVALUATOR:
        verdict = Verdict.INCONCLUSIVE
    given = {"basis": Basis.COMPARED, "check_s": 1.5} | changes
    return Judgement(name, "d" * 32, verdict, rejection=rejection, **given)


@pytest.fixture
def show(capsys, monkeypatch):
    """What is printed of judgements, `columns` wide."""

    def show(*judgements, columns=80, notes=()):
        monkeypatch.setenv("COLUMNS", str(columns))
        found = Evaluation("twice", "b" * 40, "plain", judgements, notes)
        verdicts.print_evaluation(found)
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize("columns", [40, 80, 140])
def test_a_table_keeps_its_columns_and_no_line_is_too_long(show, columns):
    rows = [
        judgement("a" * 90, Reason.TESTS, f"1 of 2 tests don't pass: {LONG}"),
        judgement("漢字.diff", not_exercised=("src/some/folder/that/is/deep/in/the/tree.py",)),
        judgement("short", Reason.UNUSABLE, "x" * 300, check_s=0.0),
    ]
    table = show(*rows, columns=columns).partition("\n\n")[0].splitlines()
    assert max(map(cell_width, table)) <= columns
    assert all(line == line.rstrip() for line in table)
    whole = "".join(table).replace(" ", "")
    assert "tree.py" in whole
    assert "…" in table[2]


def test_a_long_test_id_is_divided_between_file_and_test():
    text = f"1 of 2 tests don't pass: {LONG[:61]}"
    assert verdict_rows.fold_cell(text, 40) == [
        "1 of 2 tests don't pass:",
        "tests/test_sorting.py::",
        LONG[23:61],
    ]
    assert "".join(verdict_rows.fold_cell("x" * 50, 20)) == "x" * 50
    assert verdict_rows.fold_cell("", 20) == [""]


def test_what_a_candidate_said_can_not_steer_the_terminal(show):
    evil = "\x1b[2J\x07"
    failure = Failure("check[0]", f"test{evil}", f"line\n{evil}", (Difference(evil, evil, evil),))
    shown = show(
        judgement(f"n{evil}", Reason.TESTS, f"m{evil}", [failure]), notes=(f"note {evil}",)
    )
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\\x1b[2J" in shown


def test_details_say_how_many_are_left_out_and_whether_json_has_them(show):
    failures = [Failure("check[0]", f"test {number}", "fails") for number in range(5)]
    shown = show(judgement("one", Reason.TESTS, "m", failures))
    assert "test 2" in shown
    assert "test 3" not in shown
    assert "... and 2 more failures; --json prints them\n" in shown
    shown = show(judgement("one", Reason.TESTS, "m", failures, more=7))
    assert "... and 9 more failures; --json prints 2 of them\n" in shown
    shown = show(judgement("one", Reason.TIMEOUT, "m", failures[:1], more=7))
    assert "... and 7 more failures\n" in shown
    shown = show(judgement("one", Reason.TESTS, "m", failures[:4]))
    assert "... and 1 more failure; --json prints them\n" in shown


def test_lines_of_others_are_folded_between_words_on_a_terminal_only(monkeypatch):
    line = '      File "a.py", line 26 in test_a_name_that_is_long'
    monkeypatch.setenv("COLUMNS", "40")
    assert verdicts._fit(line) == line
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert verdicts._fit(line).splitlines() == [
        '      File "a.py", line 26 in',
        "        test_a_name_that_is_long",
    ]


def test_blanks_that_filled_anothers_terminal_are_left_out_of_details(show):
    said = f"    at 1\n...{' ' * 62}[100%]\n"
    shown = show(judgement("one", Reason.TIMEOUT, "m", [Failure("check[0]", "tests", said)]))
    assert "\n      at 1\n      ...  [100%]\n" in shown


def test_details_that_say_nothing_new_and_those_of_duplicates_are_left_out(show):
    failure = Failure("paths", "tests/a.py", "changed: tests/a.py may not be changed")
    shown = show(judgement("one", Reason.OUTSIDE, "tests/a.py may not be changed", [failure]))
    assert shown.count("tests/a.py") == 1
    failure = Failure("check[0]", "test_a", "fails")
    shown = show(judgement("one", Reason.TESTS, "m", [failure], duplicate_of="two"))
    assert "test_a" not in shown


def test_of_a_dump_the_innermost_frames_are_shown():
    frames = [f'  File "/p/m.py", line {number} in f' for number in range(30)]
    frames.insert(1, '  File "/v/site-packages/q.py", line 1 in g')
    lines = ["pytest died", "Current thread 0x1 (most recent call first):", *frames]
    shown = "\n".join(verdicts._select_lines(lines))
    assert "line 0 in f" in shown
    assert "line 29 in f" not in shown
    assert "site-packages" not in shown
    assert verdicts._select_lines(frames)[-1] == frames[-1]


def test_a_pass_by_tests_alone_is_labelled_as_such(show):
    advice = "add a function check to compare results."
    assert advice in " ".join(show(judgement(basis=Basis.TESTS)).split())
    assert "rests on exit status only" in show(judgement(basis=Basis.EXIT_STATUS))
    assert advice not in " ".join(show(judgement()).split())
    assert max(map(len, show(judgement(basis=Basis.TESTS)).splitlines())) <= 80


# -- while it runs --


@pytest.fixture
def table(monkeypatch):
    """A live table of 30 candidates on a terminal of 80 by 12, and what it shows."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "12")
    return judging.LiveTable([f"c{number}" for number in range(30)])


def lines_of(table):
    return table._render(table.canvas).plain.splitlines()


def test_a_live_table_fits_its_terminal_and_shows_what_is_going_on(table):
    table.receive(PhaseStarted(Phase.BASE_CHECKS))
    assert len(lines_of(table)) == 11
    assert (
        lines_of(table)[-1]
        == "running the checks on the unchanged base ... 0 s (22 candidates not shown)"
    )
    for place in range(22):
        table.receive(arena_events.CheckStarted(f"c{place}"))
        if place < 20:
            long = judgement(f"c{place}", Reason.TESTS, f"1 of 2 tests: {LONG}" * 3)
            table.receive(
                arena_events.CandidateJudged(
                    f"c{place}", long if place % 2 else judgement(f"c{place}")
                )
            )
    shown = lines_of(table)
    assert len(shown) == 11
    assert [line.split()[0] for line in shown[2:-1]] == [f"c{place}" for place in range(14, 22)]
    states = [line.split()[1] for line in shown[2:-1]]
    assert states == [*["passed", "rejected"] * 3, "checking", "checking"]
    assert max(map(cell_width, shown)) <= 80
    assert shown[-1] == "20 of 30 judged: 10 passed, 10 rejected ... (22 candidates not shown)"


def test_a_live_table_is_for_terminals_that_nobody_else_draws_on(monkeypatch):
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w") as pipe, open(os.devnull, "w") as file:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdout", file)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setenv("TERM", "xterm")
        assert type(judging.make_display([], is_silent=False)) is judging.LiveTable
        assert type(judging.make_display([], is_silent=True)) is judging.EvaluationProgress
        monkeypatch.setenv("TERM", "dumb")
        assert type(judging.make_display([], is_silent=False)) is judging.EvaluationLog
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys, "stdout", pipe)  # less, say
        assert type(judging.make_display([], is_silent=False)) is judging.EvaluationLog


def test_a_log_gets_progress_lines_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(judging, "LINES_S", 0.0)
    lines = judging.EvaluationLog(["a", "b"])
    lines.receive(PhaseStarted(Phase.BASE_CHECKS))
    lines.receive(arena_events.CandidateJudged("b", judgement("b")))
    lines.receive(arena_events.CandidateJudged("a", judgement("a")))
    assert capsys.readouterr().err.splitlines() == [
        "running the checks on the unchanged base ...",
        "1 of 2 judged: 1 passed ...",
    ]
    assert [each.name for each in lines.judged] == ["a", "b"]


# -- how it ends --


@pytest.fixture
def replay(monkeypatch, top, run):
    """The command with an arena that judges the first candidate, and then ends as it is told."""

    def replay(end, *options):
        async def judge(problem, candidates, *, settings, **others):
            name = candidates[0].name
            settings.emit(arena_events.CandidateJudged(name, judgement(name)))
            if isinstance(end, BaseException):
                raise end
            return replace(end, judgements=tuple(judgement(each.name) for each in candidates))

        monkeypatch.setattr(evaluate, "evaluate_candidates", judge)
        monkeypatch.setattr(judging, "LINES_S", math.inf)  # of how far it is, the end alone is told
        given = (top / "problem.yaml", top / "c/right.diff", top / "c/wrong.diff")
        return run("evaluate", "--check-only", *given, *options)

    return replay


def test_what_was_judged_before_an_interruption_is_not_lost(replay):
    code, out, err = replay(KeyboardInterrupt())
    assert code == 130
    assert "right.diff  passed" in out
    assert err.split("\n") == ["1 of 2 judged: 1 passed", "", "interrupted", ""]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_end_it_in_good_order(monkeypatch, top, run, name):
    ended = []

    async def judge(*given, **others):
        os.kill(os.getpid(), signal.Signals[name])
        try:
            await anyio.sleep(60)
        finally:
            ended.append(name)

    monkeypatch.setattr(evaluate, "evaluate_candidates", judge)
    before = signal.signal(signal.Signals[name], signal.SIG_DFL)  # it may be ignored (nohup)
    try:
        code, _, err = run("evaluate", "--check-only", top / "problem.yaml")
    finally:
        signal.signal(signal.Signals[name], before)
    assert (code, ended, err.split()) == (130, [name], ["interrupted"])


def test_a_hangup_that_is_ignored_stays_ignored(monkeypatch, top, run):  # nohup
    async def judge(*given, **others):
        os.kill(os.getpid(), signal.SIGHUP)
        await anyio.sleep(0.05)
        return Evaluation("twice", "b" * 40, "plain", ())

    monkeypatch.setattr(evaluate, "evaluate_candidates", judge)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run("evaluate", "--check-only", top / "problem.yaml")[0] == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_was_judged_before_something_of_ours_breaks_is_not_lost(replay):
    code, out, err = replay(LabError("no room left"))
    assert (code, "right.diff  passed" in out) == (4, True)
    assert err.splitlines()[-1] == "error: no room left"


@pytest.mark.parametrize(
    ("end", "code", "error"),
    [
        (LabError("no room left"), 4, "no room left"),
        (OSError(28, "no room left"), 4, "[Errno 28] no room left"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_was_judged_before_it_ended_is_in_the_document_too(replay, end, code, error):
    got, out, _ = replay(end, "--json")
    told = json.loads(out)
    assert (got, told["ok"], told["error"]) == (code, False, error)
    assert [(each["name"], each["verdict"]) for each in told["candidates"]] == [
        ("right.diff", "passed")
    ]


def test_an_interruption_before_the_first_verdict_prints_a_document_too(top, run, monkeypatch):
    async def stop(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "evaluate_candidates", stop)
    problem, candidate = top / "problem.yaml", top / "c/right.diff"
    code, out, _ = run("evaluate", "--check-only", problem, candidate, "--json")
    told = json.loads(out)
    assert (code, told["ok"], told["error"], told["candidates"]) == (130, False, "interrupted", [])


@pytest.mark.parametrize("as_json", [True, False])
def test_samples_that_can_not_be_written_cost_no_verdict(replay, tmp_path, monkeypatch, as_json):
    def write(*given):
        raise OSError(28, "No space left on device", "samples.csv")

    monkeypatch.setattr(evaluate, "save_timings", write)
    done = Evaluation("twice", "b" * 40, "plain", ())
    code, out, err = replay(done, "--samples", tmp_path / "samples.csv", *["--json"] * as_json)
    assert (code, "right.diff" in out) == (2, True)
    assert ("error: " in err, "No space left" in err, "samples.csv" in err) == (True, True, True)
    if as_json:
        assert list(json.loads(out)) == KEYS, "one document"


def test_candidates_that_we_could_not_judge_are_exit_code_4(replay, monkeypatch):
    done = Evaluation("twice", "b" * 40, "plain", ())
    assert replay(done)[0] == 0
    monkeypatch.setattr(Evaluation, "is_complete", property(lambda self: False))
    code, out, err = replay(done)
    assert (code, "right.diff" in out) == (4, True)
    assert "could not be judged" in err
    code, out, err = replay(done, "--json")
    assert (code, list(json.loads(out)), err) == (4, KEYS, "")


def test_it_is_said_how_many_could_not_be_judged_and_how_many_not_be_timed(monkeypatch, top, run):
    lost = Rejection(Reason.EVALUATOR, "no room")
    unchecked = Judgement("a", "", Verdict.INCONCLUSIVE, rejection=lost)
    untimed = Judgement("b", "d", Verdict.INCONCLUSIVE, Basis.TESTS, rejection=lost)

    async def judge(*given, **others):
        judgements = (unchecked, untimed, judgement("right.diff"))
        return Evaluation("twice", "b" * 40, "plain", judgements)

    monkeypatch.setattr(evaluate, "evaluate_candidates", judge)
    code, out, err = run("evaluate", top / "problem.yaml", top / "c/right.diff")
    assert (code, "right.diff" in out, "no room" in out) == (4, True, True)
    assert err.splitlines()[-1] == (
        "error: 2 of 3 candidates could not be judged (1 passed the checks and could not be timed),"
        " through no fault of theirs; see above"
    )


# -- bad input: one clear message, exit code 2 --


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.yaml"], "nope.yaml: no such file"),
        (["problem.yml"], "problem.yml: no such file; did you mean 'problem.yaml'?"),
        (["."], ".: is a directory; did you mean 'problem.yaml'?"),
        (
            ["src/twice.py"],
            "src/twice.py: is a whole file; name a function in it: src/twice.py::double",
        ),
        ([ROOT / "examples/search.yaml"], "this is a study, not a code problem; `fairtrial plan`"),
        (
            ["problem.yaml", "c/nope.diff"],
            "c/nope.diff: there is no such file, folder or",
        ),
        (["problem.yaml", "src/twice.py"], "src/twice.py: this is not a candidate; a candidate"),
        (["problem.yaml", "/dev/null"], "/dev/null: this is not a candidate"),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_files_that_can_not_be_used(run, top, monkeypatch, arguments, message, as_json):
    monkeypatch.chdir(top)
    code, out, err = run("evaluate", "--check-only", *arguments, *["--json"] * as_json)
    assert code == 2
    shown = json.loads(out)["error"] if as_json else err
    assert message in shown
    assert len(shown.splitlines()) == 1


def test_all_candidates_that_can_not_be_read_are_in_one_report(run, top):
    code, _, err = run(
        "evaluate", "--check-only", top / "problem.yaml", "a.diff", top / "c/right.diff", "b.txt"
    )
    assert code == 2
    assert [line.split(":")[1].strip() for line in err.splitlines()[:-1]] == ["a.diff", "b.txt"]
    assert err.splitlines()[-1] == "2 mistakes"


@pytest.mark.parametrize("number", ["0", "-1", "257", "many"])
def test_numbers_of_candidates_at_once_that_make_no_sense(run, top, number):
    code, out, _ = run(
        "evaluate", "--check-only", top / "problem.yaml", "--json", "--parallel-candidates", number
    )
    assert code == 2
    assert "--parallel-candidates" in json.loads(out)["error"]


@pytest.mark.parametrize(
    ("instead", "message"),
    [
        ("repo: nowhere", "nowhere: can't be read: No such file or directory; `repo` names it"),
        ("cwd: nowhere", "cwd: no such folder: "),
        ("python: .venv/bin/python", "python: there is no "),
        ("python: python0.9", "python: there is no program 'python0.9' on the path"),
        ("include: [nowhere]", "include[0]: 'nowhere': nothing in the tree matches it"),
    ],
)
def test_what_a_problem_names_and_is_not_there(run, top, write, instead, message):
    repo = "" if instead.startswith("repo") else f"repo: {top}\n"
    code, _, err = run(
        "evaluate", "--check-only", write(f"{PROBLEM}{repo}{instead}\n"), "--unsandboxed"
    )
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_base_that_fails_is_named_with_file_and_check(run, top, write, monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    check = 'problem_id: x\nrepo: {}\ncheck:\n  - command: ["false"]\n'
    code, out, _ = run(
        "evaluate", "--check-only", write(check.format(top)), "--json", "--unsandboxed", "--cold"
    )
    assert code == 2
    (mistake,) = json.loads(out)["mistakes"]
    assert (Path(mistake["file"]).name, mistake["field"]) == ("study.yaml", "check[0]")
    assert mistake["message"] == "on the unchanged base, the command exited with 1"
    assert "it must exit with 0 there" in mistake["hint"]


def test_a_folder_that_is_no_repository_is_judged_as_it_is(run, write):
    path = write(PROBLEM)
    for name, text in FILES.items():
        target = path.parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    code, out, _ = run("evaluate", "--check-only", path, "--unsandboxed")
    assert code == 0
    assert "is in no git repository" in out


def test_a_place_for_slots_that_can_not_be_used(run, top, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", "/dev/null")
    code, _, err = run("evaluate", "--check-only", top / "problem.yaml", "--unsandboxed")
    assert code == 4
    assert "/dev/null/arena: Not a directory" in err
    assert "set FAIRTRIAL_HOME to a folder that can be written to" in err


def test_what_a_problems_file_may_mean_otherwise_is_a_warning_like_any_other(run, write):
    _, _, err = run(
        "evaluate", "--check-only", write(f"{PROBLEM}largest_mb: 0100\n"), "--unsandboxed"
    )
    assert re.match(r"warning: \S+study\.yaml:6: largest_mb: `0100` is read as 64", err)
    assert "StudyWarning" not in err


# -- the guide --


def test_the_guides_json_is_what_is_printed(told):
    shown = json.loads(re.search(r"```json\n(.*?)```", GUIDE, re.S)[1])
    assert list(shown) == list(told)
    estimate = Estimate(1.42, 1.38, 1.46, 6, 0.95)
    timing = Timing("1k-nodes", Verdict.FASTER, estimate, 1.4, 0.2, 1, 1.0, 0.0, Pair(1.0, 1.0))
    timing = replace(
        timing,
        instructions=Pair(2.0, 1.0),
        total=estimate,
        tail=estimate,
        slow_inputs=(SlowInput(2, 7, 1, 1.62, "list of 12"),),
        startup_extra_s=0.001,
        pays_after=2,
        serial_correlation=-0.1,
        rounds=110,
        sample_s=2.6e-4,
        round_noise=0.05,
        timed_share=0.3,
        memory=MemoryResult(MemoryVerdict.SMALLER, 0.8, 0.79, 0.81, 0.95, 14.2, 11.4),
        cpu=estimate,
    )
    confirmed = TotalVerdict.CONFIRMED
    figures = (1.2e-4, 4.1e-4, 2.9e-4, 4.0e-4, 2.8e-4, 0.98, 0.9, 1.06, 0.99)
    check = TotalCheck("1k-nodes", confirmed, *figures, "wall", 3, 300, 2.4)
    measured = Measurement(
        Verdict.FASTER, estimate, adopt=True, timings=(timing,), total_checks=(check,)
    )
    judgement = Judgement("a", "0", Verdict.FASTER, measurement=measured)
    printed = json.loads(json.dumps(judgement.as_dict()))
    assert list(told["candidates"][0]) == list(printed)
    assert sketch(shown["candidates"][0]) == sketch(printed)


def sketch(value):
    """What kinds of values there are, and under which names."""
    if isinstance(value, dict):
        return [(name, sketch(each)) for name, each in value.items()]
    return [sketch(each) for each in value] if isinstance(value, list) else type(value)


def test_the_guide_names_only_options_that_there_are_and_all_of_them():
    help = CliRunner().invoke(evaluate.command, ["--help"], terminal_width=200).output
    options = set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", help)) - {"--help"}
    assert set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", GUIDE)) == options
    assert "Example: fairtrial evaluate problem.yaml" in help


@pytest.mark.parametrize(
    ("heading", "words"),
    [("basis", set(Basis) - {Basis.NOTHING}), ("reason", set(Reason))],
)
def test_the_guides_tables_have_every_word(heading, words):
    section = GUIDE.partition(f"| {heading} | what ")[2].partition("\n\n")[0]
    rows = [row.split(" | ")[0] for row in section.splitlines()[2:]]
    assert {word for row in rows for word in re.findall("`([^`]+)`", row)} == words


def test_the_guide_names_every_verdict_and_exit_code():
    section = GUIDE.partition("## Exit codes and JSON\n")[2].partition("```")[0]
    assert {word for word in Verdict if f"`{word}`" in section} == set(Verdict)
    for code in (0, 2, 4, 130):
        assert re.search(rf"\b{code}: ", section), code


def test_the_guides_python_runs(top, monkeypatch, capsys):
    code = re.search(r"```python\n(.*?)```", GUIDE, re.S)[1]
    code = code.replace("toposort.yaml", "problem.yaml")
    code = code.replace("candidates/deque.diff", "c/wrong.diff")
    judge = fairtrial.arena.evaluate_candidates_sync
    settings = fairtrial.arena.ArenaSettings(timing="none", unsandboxed=True, warm=False)
    monkeypatch.setattr(
        fairtrial.arena,
        "evaluate_candidates_sync",
        lambda *a, **k: judge(*a, **k, settings=settings),
    )
    monkeypatch.chdir(top)
    exec(code, {})
    assert capsys.readouterr().out.splitlines() == [
        "wrong.diff rejected compared results",
        "twice:double, case 1 called as double(3)",
    ]

"""Evaluators that a study names: what they score, what they refuse."""

import json

import pytest
from run_kit import make_study, read_table

from fairtrial import ProblemPacket, StudyError, run_study
from fairtrial.core import LabError
from fairtrial.sandbox import find_sandbox
from fairtrial.study.evaluators import code_evaluators


def scores(tmp_path, evaluator, answer, reference="42", **packet):
    """The metrics, with notes, of one answer that an agent gives in a real run."""
    problem = {"brief": "b", "evaluator": evaluator, "reference": reference, **packet}
    study = make_study(tmp_path / "out", levels=(1,), replicates=1, problems={"p": problem})
    output = answer if isinstance(answer, dict) else {"answer": answer}
    (result,) = run_study(study, agent_bindings={"a": lambda task: output})
    assert result.error_info is None, result.error_info
    rows = read_table(tmp_path / "out", "evaluations.csv")
    return {row["metric_name"]: float(row["metric_value"]) for row in rows}


def use(name, **options):
    return {"use": name, "options": options}


@pytest.mark.parametrize(
    ("evaluator", "answer", "reference", "score"),
    [
        ("exact", "42", 42, 1),
        ("exact", " 42\n", "42", 1),
        ("exact", "Paris", "paris", 0),
        (use("exact", ignore_case=True), "PARIS", "paris", 1),
        (use("exact", ignore_punctuation=True), "it's: Paris.", "its Paris", 1),
        (use("exact", ignore_space=False), "a  b", "a b", 0),
        ("exact", "Zu\u0308rich", "Z\u00fcrich", 1),
        (use("exact", extract=r"answer is (\w+)"), "the answer is B. No: the answer is C", "C", 1),
        (use("exact", extract_reference=r"#### (.+)"), "7", "3 + 4 = 7\n#### 7", 1),
        ("numeric", "about 1,234.5 in all", 1234.5, 1),
        ("numeric", "0.30000000000000004", "0.3", 1),
        ("numeric", "$3.10", 3, 0),
        (use("numeric", tolerance=0.1), "3.1", 3, 1),
        (use("numeric", tolerance=0.1), "3.11", 3, 0),
        (use("numeric", relative_tolerance=0.01), "101", 100, 1),
        ("numeric", "\u22125", -5, 1),
        ("numeric", "none at all", 3, 0),
        ("one_of", "b", ["a", "b"], 1),
        ("one_of", "b", "a|b", 1),
        ("one_of", "ab", "a|b", 0),
        ("contains", "the cat sat", "cat", 1),
        ("contains", "the cat sat", ["cat", "dog"], 0),
        (use("contains", need="any"), "the cat sat", ["cat", "dog"], 1),
        (use("regex", pattern=r"\d{3}"), "abc 123", None, 1),
        (use("regex", pattern=r"\d{3}", whole=True), "abc 123", None, 0),
        ("regex", "xyz", "^x.z$", 1),
        (use("json_schema", schema={"type": "object", "required": ["a"]}), '{"a": 1}', None, 1),
        (use("json_schema", schema={"type": "object", "required": ["a"]}), "{}", None, 0),
        (use("json_schema", schema={"type": "array"}), "```json\n[1]\n```", None, 1),
        (use("json_schema", schema={"type": "array"}), "not JSON", None, 0),
    ],
)
def test_an_answer_gets_its_score(tmp_path, evaluator, answer, reference, score):
    found = scores(tmp_path, evaluator, answer, reference)
    assert list(found.values()) == [score]


@pytest.mark.parametrize(
    ("output", "field", "score"),
    [
        ({"exit_code": 0, "files": {"answer.txt": "42\n"}}, "", 1),
        ({"files": {"answer.txt": "42", "log.txt": "41"}}, "", 0),
        ({"files": {"answer.txt": "42", "log.txt": "41"}}, "files.answer.txt", 1),
        ({"files": {"answer.txt": "42"}, "answer": "41"}, "", 0),
        ({"a.b": {"c": "42"}}, "a.b.c", 1),
        ({"a": {"b": "42"}}, "a.c", 0),
        ({"a": "42"}, "a.b", 0),
    ],
)
def test_an_answer_is_found_in_files_and_by_a_path(tmp_path, output, field, score):
    found = scores(tmp_path, use("exact", field=field), output)
    assert list(found.values()) == [score]


def test_overlap_gives_precision_recall_and_f1(tmp_path):
    found = scores(tmp_path, "overlap", "a, b, c, d", ["A", "b", "c"])
    assert found == pytest.approx(
        {"overlap": 4 / 7, "overlap_precision": 2 / 4, "overlap_recall": 2 / 3}
    )
    tidy = use("overlap", ignore_case=True)
    assert scores(tmp_path / "2", tidy, ["a", "b", "b"], ["A", "b"])["overlap"] == 1


def test_several_evaluators_give_metrics_by_name(tmp_path):
    evaluators = ["exact", {"use": "numeric", "name": "close", "options": {"tolerance": 1}}]
    assert scores(tmp_path, evaluators, "43") == {"exact": 0, "close": 1}
    rows = read_table(tmp_path / "out", "evaluations.csv")
    assert {row["evaluator_id"] for row in rows} == {"exact", "numeric"}


def test_an_output_without_an_answer_scores_0_and_says_so(tmp_path):
    assert scores(tmp_path, "exact", {"thoughts": "none"}) == {"exact": 0}
    (row,) = read_table(tmp_path / "out", "evaluations.csv")
    assert "no answer" in row["notes_json"]
    assert scores(tmp_path / "2", use("exact", field="thoughts"), {"thoughts": "42"})["exact"] == 1


def test_agents_see_neither_reference_nor_evaluator_internals(tmp_path):
    seen = []

    def agent(task):
        seen.append((task.problem.reference, dict(task.problem.hidden), repr(task.problem)))
        with pytest.raises(TypeError, match="agents don't have"):
            task.problem.evaluate({"answer": "secret"})
        return {"answer": "secret"}

    packet = ProblemPacket("p", evaluator="exact", reference="secret", hidden={"tests": "secret"})
    study = make_study(tmp_path, levels=(1,), replicates=1)
    (result,) = run_study(study, agent_bindings={"a": agent}, problem_registry={"p": packet})
    assert result.error_info is None
    assert [row["metric_value"] for row in result.evaluator_outputs] == [1]
    assert seen[0][:2] == (None, {})
    assert "secret" not in seen[0][2]


def test_a_function_gets_what_its_parameters_name(tmp_path):
    (tmp_path / "own_scores.py").write_text(
        "def close(answer, reference, *, row, limit=1):\n"
        "    return {'close': int(abs(float(answer) - reference) <= limit), 'rows': len(row)}\n"
    )
    study = make_study(
        tmp_path / "out",
        levels=(1,),
        replicates=1,
        problems={
            "p": {
                "payload": {"x": 1},
                "reference": 5,
                "evaluator": use("own_scores:close", limit=2),
            }
        },
    )
    study.set_folder(tmp_path)
    (result,) = run_study(study, agent_bindings={"a": lambda task: {"answer": "7"}})
    values = {row["metric_name"]: row["metric_value"] for row in result.evaluator_outputs}
    assert values == {"close": 1, "rows": 1}


@pytest.mark.parametrize(
    ("evaluator", "message"),
    [
        ("exakt", "did you mean 'exact'"),
        (use("numeric", tolerence=1), "did you mean 'tolerance'"),
        (use("numeric", tolerance=-1), "must be 0 or more"),
        (use("exact", extract="("), "no regular expression"),
        (["exact", "exact"], "two evaluators are called 'exact'"),
        (use("contains", need="some"), "expected 'all' or 'any'"),
        (use("tests"), "needs `tests_column` or `tests_file`"),
        (use("command"), "must name a program"),
        (use("json_schema", schema={"type": 5}), "no JSON schema"),
    ],
)
def test_a_wrong_evaluator_is_refused_before_anything_runs(tmp_path, evaluator, message):
    problem = {"brief": "b", "evaluator": evaluator, "reference": 1}
    study = make_study(tmp_path / "out", problems={"p": problem})
    with pytest.raises(StudyError, match="evaluator") as caught:
        run_study(study, agent_bindings={"a": lambda task: {}})
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_an_evaluator_that_needs_a_reference_is_refused_without_one(tmp_path):
    study = make_study(tmp_path, problems={"p": {"brief": "b", "evaluator": "exact"}})
    with pytest.raises(StudyError, match="'exact' needs the right answer"):
        run_study(study, agent_bindings={"a": lambda task: {}})


def test_a_reference_that_can_not_be_used_breaks_the_run_and_is_not_the_agents_fault(tmp_path):
    problem = {"brief": "b", "evaluator": "numeric", "reference": "seven"}
    study = make_study(
        tmp_path, levels=(1,), replicates=1, problems={"p": problem}, budget={"retries": 0}
    )
    (result,) = run_study(study, agent_bindings={"a": lambda task: {"answer": 7}})
    assert result.status == "broken"
    assert "holds no number" in result.error_info
    assert issubclass(LabError, Exception)


# -- code --


def code_scores(tmp_path, tests, answer, **options):
    evaluator = use("tests", tests_column="tests", sandbox="plain", **options)
    packet = {"reference": None, "payload": {"tests": tests, "entry": "add", "head": "X = 1"}}
    return scores(tmp_path, evaluator, answer, **packet)


GOOD = "Here it is:\n```python\ndef add(a, b):\n    return a + b\n```\nDone."


@pytest.mark.parametrize(
    ("tests", "answer", "passed"),
    [
        ("assert add(1, 2) == 3", GOOD, 1),
        (["assert add(1, 2) == 3", "assert add(1, 2) == 4"], GOOD, 0.5),
        (json.dumps(["assert add(1, 2) == 3"]), GOOD, 1),
        ("def test_one():\n    assert add(1, 1) == 2\ndef test_two():\n    assert 0", GOOD, 0.5),
        ("assert add(1, 2) == 3", "def add(a, b): return 0", 0),
        ("assert add(1, 2) == 3", "def add(a, b: return 0", 0),
        ("assert add(1, 2) == 3", "import os; os._exit(0)", 0),
        ("assert add(1, 2) == 3", "raise SystemExit(0)", 0),
    ],
)
def test_code_is_scored_by_its_tests(tmp_path, tests, answer, passed):
    found = code_scores(tmp_path, tests, answer)
    assert found == {"tests": int(passed == 1), "tests_passed": passed}


def test_check_functions_get_the_answers_function(tmp_path):
    tests = "def check(candidate):\n    assert candidate(1, 2) == 3 * X"
    options = {"entry_column": "entry", "before_column": "head"}
    assert code_scores(tmp_path, tests, GOOD, **options)["tests"] == 1
    wrong = "def add(a, b): return 0"
    assert code_scores(tmp_path / "2", tests, wrong, **options)["tests"] == 0


def test_code_that_never_ends_scores_0(tmp_path):
    found = code_scores(tmp_path, "assert 1", "while True: pass", timeout_s=0.5)
    assert found == {"tests": 0, "tests_passed": 0}
    (row, _) = read_table(tmp_path / "out", "evaluations.csv")
    assert "timeout" in row["notes_json"]


def test_an_answer_can_not_pass_itself_off_as_tests_that_could_not_be_started(tmp_path):
    answer = (
        "import os, sys\n"
        "os.write(2, b'cannot run python in /tmp: No such file or directory\\n')\n"
        "os._exit(127)"
    )
    assert code_scores(tmp_path, "assert 1", answer) == {"tests": 0, "tests_passed": 0}


def test_tests_that_could_not_be_started_break_the_run(tmp_path, monkeypatch):
    driver = tmp_path / "driver.py"
    driver.write_text("raise MemoryError")
    monkeypatch.setattr(code_evaluators, "DRIVER", driver)
    evaluator = use("tests", tests_column="tests", sandbox="plain")
    packet = {"brief": "b", "evaluator": evaluator, "payload": {"tests": "assert 1"}}
    study = make_study(tmp_path / "out", levels=(1,), replicates=1, problems={"p": packet})
    (result,) = run_study(study, agent_bindings={"a": lambda task: {"answer": GOOD}})
    assert result.status == "broken"
    assert "the tests could not be started" in result.error_info


def test_a_command_judges_by_its_exit_code_or_by_what_it_prints(tmp_path):
    script = "import json,sys; case=json.load(open('case.json')); answer=sys.stdin.read()\n"
    by_code = script + "sys.exit(0 if answer == str(case['reference']) else 1)"
    by_text = script + "print('log'); print(json.dumps({'size': len(answer)}))"
    cases = [
        (by_code, "42", {"command": 1}),
        (by_code, "4", {"command": 0}),
        (by_text, "four", {"command_size": 4}),
    ]
    for number, (code, answer, expected) in enumerate(cases):
        evaluator = use("command", command=["{python}", "-c", code], sandbox="plain")
        assert scores(tmp_path / str(number), evaluator, answer) == expected


def test_code_is_tested_in_the_machines_sandbox(tmp_path):
    try:
        find_sandbox()
    except LabError as error:
        pytest.skip(str(error))
    secret = tmp_path / "secret.txt"
    secret.write_text("mine")
    hidden = f"assert not pathlib.Path({str(secret)!r}).exists()"
    tests = f"import pathlib\nassert add(1, 2) == 3\n{hidden}"
    evaluator = use("tests", tests_column="tests")
    found = scores(tmp_path, evaluator, GOOD, None, payload={"tests": tests})
    assert found == {"tests": 1, "tests_passed": 1}

"""Files of code problems: what they may say, what is refused and how, and where paths lead."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, strategies as st

from fairtrial.arena import Benchmark, Check, CodeProblem, load_problem, problem_schema
from fairtrial.arena.model.problem import resolve_paths
from fairtrial.cli.schema import command as schema_command
from fairtrial.core import Mistake, StudyError, build_record, dump_record
from fairtrial.core.documents import StudyWarning
from fairtrial.core.fields import field_docs, field_types
from fairtrial.sandbox import Limits
from fairtrial.study import load_study

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "toposort"
RECORDS = (CodeProblem, Check, Benchmark, Limits)
# As people are told to write one.
WHOLE = """\
problem_id: toposort
family: code
repo: .                       # default: the repo this file is in
editable: ["src/**/*.py"]
include: []                   # ignored paths that slots need
python: .venv/bin/python      # default: the project's .venv, else our own
import_roots: [src]           # default: detected
build: []                     # a command per candidate, for compiled projects
check:
  - command: ["{python}", "-m", "pytest", "-q", "tests/"]   # per-test results are read
    timeout_s: 120
  - function: "toposort:sort"         # compared with the base, by the parent
    inputs: "benchmarks/inputs.py:graph_1k"   # make(rng) -> (args, kwargs)
    cases: 50
  - function: "toposort:sort"
    calls: cases/toposort.json        # recorded arguments and results
bench:
  - name: 1k-nodes
    call: "toposort:sort"
    inputs: "benchmarks/inputs.py:graph_1k"
  - name: cli
    command: ["{python}", "-m", "toposort", "data/big.txt"]
min_effect: 0.02
alpha: 0.05
budget_s: 20
limits: {memory_mb: 2048, processes: 64, network: false}
sandbox: auto
"""
COMMAND = {"command": ["make", "test"]}
FUNCTION = {"function": "m:f", "inputs": "a.py:make"}


def problem_with(**fields: Any) -> dict[str, Any]:
    return {"problem_id": "p", "check": [COMMAND], **fields}


def mistakes_of(data: Any, cls: type[Any] = CodeProblem) -> list[str]:
    mistakes: list[Mistake] = []
    build_record(cls, copy.deepcopy(data), (), mistakes)
    return [str(mistake) for mistake in mistakes]


def write(folder: Path, text: str, name: str = "problem.yaml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_whole_file_is_read_as_it_stands(tmp_path: Path) -> None:
    problem = load_problem(write(tmp_path, WHOLE))
    assert problem.folder == tmp_path.resolve()
    assert problem.python == ".venv/bin/python"
    assert problem.import_roots == ("src",)
    assert problem.build == ()
    assert [check.is_pytest for check in problem.check] == [True, False, False]
    assert problem.check[1].cases == 50
    assert [benchmark.name for benchmark in problem.bench] == ["1k-nodes", "cli"]
    assert problem.limits == Limits(memory_mb=2048, processes=64, network=False)


def test_json_and_python_say_the_same_as_yaml(tmp_path: Path) -> None:
    told = load_problem(write(tmp_path, WHOLE))
    as_json = load_problem(write(tmp_path, json.dumps(yaml.safe_load(WHOLE)), "problem.json"))
    assert as_json == told
    assert load_problem(write(tmp_path, json.dumps(dump_record(told)), "all.json")) == told
    short = CodeProblem(problem_id="p", check=(Check(command=["pytest"]),))  # type: ignore[arg-type]
    assert short.check[0].command == ("pytest",)
    assert short.folder == Path()


def test_a_file_that_is_reached_by_a_link_lies_where_the_link_does(tmp_path: Path) -> None:
    """The file may be linked into the project, and the project's folder be reached by a link."""
    for name in ("elsewhere", "project"):
        (tmp_path / name).mkdir()
    write(tmp_path / "elsewhere", WHOLE)
    (tmp_path / "project/problem.yaml").symlink_to(tmp_path / "elsewhere/problem.yaml")
    (tmp_path / "linked").symlink_to(tmp_path / "project")
    found = load_problem(tmp_path / "linked/problem.yaml").folder
    assert found == (tmp_path / "project").resolve()


def test_all_mistakes_come_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """\
problem_id: p
editble: ["src/**"]
python: 3.11
check:
  - command: pytest -q tests
  - function: toposort.sort
    inputs: inputs.py
    cases: 0
    timeout_s: -1
    tolerance: 3
  - compare: outptu
    command: ["{pyhton}", "-m", "pytest"]
env: {PYTHONPATH: src, 1A: x}
build: [["make"], ["make", "more"]]
limits: {memory_mb: 0}
"""
    with pytest.raises(StudyError) as caught:
        load_problem(write(tmp_path, text))
    told = {mistake.line: str(mistake) for mistake in caught.value.mistakes}
    expected = {
        2: "editble: unknown key; did you mean 'editable'?",
        3: "python: expected text, got the number 3.11; put it in quotes",
        5: "check[0].command: expected a list of words, got a text; "
        'write ["pytest", "-q", "tests"]',
        6: "check[1].function: expected module:function, got 'toposort.sort'; "
        "did you mean 'toposort:sort'?",
        7: "check[1].inputs: expected file.py:function, got 'inputs.py'; "
        "a path from the project's folder: 'benchmarks/inputs.py:make'",
        8: "check[1].cases: must be 1 to 100,000, got 0",
        9: "check[1].timeout_s: must be above 0, got -1",
        11: "check[2].compare: expected 'exit' or 'output', got the text 'outptu'",
        12: "check[2].command[0]: unknown placeholder {pyhton}; the only one is {python}",
        14: "build: expected one command, a list of words; got a list of lists; "
        'for several commands write ["sh", "-c", "first && second"]',
        15: "limits.memory_mb: must be 1 or more, got 0",
    }
    assert {line: told.get(line) for line in expected} == expected
    assert "check[1].tolerance: unknown key" in told[10]
    of_variables = [str(item) for item in caught.value.mistakes if item.line == 13]
    assert of_variables == [
        "env.PYTHONPATH: is set by fairtrial; name folders to import from in import_roots",
        "env.1A: is no name for a variable; letters, digits and _, not beginning with a digit",
    ]
    assert str(caught.value).startswith(f"{tmp_path}/problem.yaml:2: ")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({}, "check[0]: needs `command` or `function`"),
        ({"cases": 5}, "check[0]: needs `command` or `function`"),
        (
            COMMAND | FUNCTION,
            "check[0].function: can't be combined with `command`; split it into two checks",
        ),
        ({"function": "m:f"}, "check[0].function: needs `inputs` or `calls`: what to call it with"),
        (FUNCTION | {"calls": "c.json"}, "check[0].calls: can't be combined with `inputs`"),
        (COMMAND | {"calls": "c.json"}, "check[0].calls: is for a check of a `function`"),
        (COMMAND | {"inputs": "a.py:f"}, "check[0].inputs: is for a check of a `function`"),
        (COMMAND | {"aliasing": "any"}, "check[0].aliasing: is for a check of a `function`"),
        (FUNCTION | {"dict_order": "none"}, "check[0].dict_order"),
        (COMMAND | {"view": "m:f"}, "check[0].view: is for a check of a `function`"),
        (FUNCTION | {"function": "m.py:f"}, "name the module as Python imports it: 'm:f'"),
        (FUNCTION | {"function": "src/a/m.py:f"}, "as Python imports it: 'a.m:f'"),
        (FUNCTION | {"function": "m:"}, "check[0].function: expected module:function, got 'm:'"),
        (FUNCTION | {"function": "m:f()"}, "check[0].function: expected module:function"),
        (FUNCTION | {"function": "m:f:g"}, "check[0].function: expected module:function"),
        (FUNCTION | {"function": "m:class"}, "check[0].function: expected module:function"),
        (FUNCTION | {"view": "f"}, "check[0].view: expected module:function, got 'f'"),
        (FUNCTION | {"inputs": "a:make"}, "check[0].inputs: expected file.py:function"),
        (FUNCTION | {"inputs": "a.py:Maker.make"}, "check[0].inputs: expected file.py:function"),
        (FUNCTION | {"inputs": "/a.py:make"}, "check[0].inputs: must not be an absolute path"),
        (FUNCTION | {"inputs": "../a.py:make"}, "must not lead out of the project's folder"),
        ({"function": "m:f", "calls": "a/../../c.json"}, "check[0].calls: must not lead out"),
        ({"function": "m:f", "calls": "/c.json"}, "check[0].calls: must not be an absolute path"),
        (FUNCTION | {"cases": 100_001}, "check[0].cases: must be 1 to 100,000, got 100,001"),
        (FUNCTION | {"rel_tol": -1e-9}, "check[0].rel_tol: must be 0 or more, got -1e-09"),
        (FUNCTION | {"abs_tol": -1}, "check[0].abs_tol: must be 0 or more"),
        (FUNCTION | {"compare": "output"}, "check[0].compare: is for other commands"),
        ({"command": ["pytest"], "compare": "output"}, "check[0].compare: is for other commands"),
        (COMMAND | {"timeout_s": 0}, "check[0].timeout_s: must be above 0, got 0"),
        ({"command": ["pytest -q"]}, 'write each word on its own: ["pytest", "-q"]'),
        ({"command": [" "]}, "check[0].command[0]: must not be empty"),
        ({"command": ["{venv}", "-c", ""]}, "unknown placeholder {venv}; the only one is {python}"),
        ({"command": ["a", "--with={Python3}"]}, "unknown placeholder {Python3}"),
        ({"command": ["a", "b\0"]}, "check[0].command[1]: holds a null character"),
        ("pytest -q", "check[0]: expected a mapping"),
    ],
)
def test_what_is_wrong_with_a_check_is_reported(check: Any, message: str) -> None:
    found = mistakes_of(problem_with(check=[check]))
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    "check",
    [
        {"command": ["awk", "{print}", "{a: {b}}"]},
        {"command": ["sh", "-c", "echo ${HOME} {x}"]},
        {"command": ["/opt/my tools/run", ""]},
        {"command": ["{python}/../x", "--python={python}"]},
        {"command": ["diff", "a", "b"], "compare": "output"},
        {"function": "a.b.c:Graph.sort", "calls": "x.json", "view": "a:b"},
        {"function": "módulo:función", "inputs": "a b/ü.py:make"},
        {"function": "m:f", "inputs": "a.py:f", "rel_tol": 0, "timeout_s": 0.5, "cases": 100_000},
    ],
)
def test_unusual_but_valid_checks_are_accepted(check: dict[str, Any]) -> None:
    assert mistakes_of(problem_with(check=[check])) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"problem_id": " "}, "problem_id: must not be empty"),
        ({"check": []}, "check: is empty: nothing would be judged; name at least one command"),
        ({"family": "packet"}, "family: expected 'code', got the text 'packet'"),
        ({"editable": []}, "editable: is empty: no candidate could change anything"),
        ({"editable": [":!a"]}, "editable: only excludes files: no candidate could"),
        ({"editable": ["/src/**"]}, "editable[0]: must not be an absolute path, got '/src/**'"),
        ({"editable": ["a", "../b"]}, "editable[1]: must not lead out of the project's folder"),
        ({"editable": ["a", ":!../b"]}, "editable[1]: must not lead out of the project's folder"),
        ({"editable": [":(icase)a"]}, "editable[0]: expected a pattern, got ':(icase)a'"),
        ({"editable": "src"}, "editable: expected a list, got the text 'src'; put it in [ ]"),
        ({"unprotect": ["~/a"]}, "unprotect[0]: must not be an absolute path"),
        ({"include": [""]}, "include[0]: must not be empty"),
        ({"include": ["a\0b"]}, "include[0]: holds a null character"),
        ({"include": ["C:\\data"]}, "include[0]: must not be an absolute path"),
        ({"import_roots": ["src", ".."]}, "import_roots[1]: must not lead out"),
        ({"cwd": "/a"}, "cwd: must not be an absolute path"),
        ({"cwd": "a/.."}, "cwd: must not lead out"),
        ({"repo": ""}, "repo: must not be empty"),
        ({"repo": "a\0"}, "repo: holds a null character"),
        (
            {"build": "make all"},
            'build: expected a list of words, got a text; write ["make", "all"',
        ),
        ({"build": ["make all"]}, "build[0]: expected a program, got 'make all'"),
        ({"env": {"HOME": "/x"}}, "env.HOME: is set by fairtrial; each command gets a new one"),
        ({"env": {"FAIRTRIAL_CHANNEL": "9"}}, "env.FAIRTRIAL_CHANNEL: is set by fairtrial"),
        ({"env": {"A": "b\0"}}, "env.A: holds a null character"),
        ({"env": {"A": 1}}, "env.A: expected text, got the number 1; put it in quotes"),
        ({"largest_mb": 0}, "largest_mb: must be 1 or more, got 0"),
        ({"sandbox": "docker"}, "sandbox: expected 'auto' or 'require' or 'plain'"),
        ({"limits": {"memory": 5}}, "limits.memory: unknown key; did you mean 'memory_mb'?"),
        ({"min_effect": 0}, "min_effect: must be above 0 and below 1, got 0"),
        ({"alpha": 1}, "alpha: must be above 0 and below 1, got 1"),
        ({"budget_s": 0}, "budget_s: must be 0.1 or more, got 0"),
        (
            {"budget_s": 0.05},
            "budget_s: must be 0.1 or more, got 0.05: the fewest sessions that can decide "
            "anything, six, start twelve processes; the default is 20",
        ),
        ({"bench": [{"name": "a"}]}, "bench[0]: needs `call`, `command` or `suite`"),
        ({"bench": [{"call": "m:f", "inputs": "a.py:f"}]}, "bench[0]: 'name' is missing"),
        ({"bench": [{"name": "a", "call": "m:f"}]}, "bench[0].call: needs `inputs`"),
        (
            {"bench": [{"name": "a", "call": "m:f", "inputs": "a.py:f", "command": ["x"]}]},
            "bench[0].call: can't be combined with `command`; split it into two benchmarks",
        ),
        (
            {"bench": [{"name": "a", "command": ["x"], "inputs": "a.py:f"}]},
            "bench[0].command: doesn't use the files that `inputs` makes; let it read files in "
            "{inputs}",
        ),
        (
            {"bench": [{"name": "a", "command": ["x", "{inputs}/a"]}]},
            "bench[0].command: uses {inputs}, but there are no `inputs`",
        ),
        ({"bench": [{"name": "a", "command": "x y"}]}, 'write ["x", "y"]'),
        ({"checks": []}, "checks: unknown key; did you mean 'check'?"),
        ({"folder": "/tmp"}, "folder: unknown key"),
    ],
)
def test_what_is_wrong_with_a_problem_is_reported(fields: dict[str, Any], message: str) -> None:
    found = mistakes_of(problem_with(**fields))
    assert len(found) == 1
    assert message in found[0]


def test_two_benchmarks_of_one_name_are_both_named() -> None:
    twice = [{"name": "a", "command": ["x"]}, {"name": "b", "command": ["x"]}] * 2
    assert len(mistakes_of(problem_with(bench=twice))) == 4


def test_a_problem_without_checks_is_refused_in_python_too() -> None:
    with pytest.raises(StudyError, match="check: is empty"):
        CodeProblem(problem_id="p")


@pytest.mark.parametrize(
    ("command", "is_pytest"),
    [
        (["pytest", "-q"], True),
        ([".venv/bin/pytest"], True),
        (["py.test"], True),
        (["{python}", "-m", "pytest"], True),
        (["python3.12", "-m", "pytest", "tests"], True),
        (["{python}", "-m", "pytest_cov"], False),
        (["{python}", "-m", "unittest", "pytest"], False),
        (["make", "pytest"], False),
    ],
)
def test_pytest_is_known_by_how_it_is_called(command: list[str], is_pytest: bool) -> None:
    assert Check(command=tuple(command)).is_pytest is is_pytest


def test_studies_and_problems_are_distinguished(tmp_path: Path) -> None:
    problem = write(tmp_path, WHOLE)
    study = write(tmp_path, "study_id: s\ntitle: t\n", "study.yaml")
    with pytest.raises(StudyError, match=r"problem.yaml: this is a code problem, not a study"):
        load_study(problem)
    with pytest.raises(StudyError, match=r"study.yaml: this is a study, not a code problem"):
        load_problem(study)


def test_files_that_are_no_problems_are_refused_in_a_line(tmp_path: Path) -> None:
    for name, text in {
        "empty.yaml": "",
        "list.yaml": "- a\n",
        "text.json": '"a"',
        "x.txt": "a",
    }.items():
        with pytest.raises(StudyError) as caught:
            load_problem(write(tmp_path, text, name))
        assert len(caught.value.mistakes) == 1
        assert "fairtrial init" not in str(caught.value)
    with pytest.raises(StudyError, match=r"did you mean '.*empty.yaml'"):
        load_problem(tmp_path / "emtpy.yaml")


def test_numbers_that_are_not_what_they_look_like_are_warned_of(tmp_path: Path) -> None:
    text = "problem_id: p\ncheck:\n- {function: 'm:f', inputs: 'a.py:f', cases: 010}\n"
    with pytest.warns(StudyWarning, match=r"problem.yaml:3: .*`010` is read as 8"):
        assert load_problem(write(tmp_path, text)).check[0].cases == 8


# Where paths lead.


def paths_of(problem: CodeProblem) -> dict[str, Any]:
    return {
        "cwd": problem.cwd,
        "editable": problem.editable,
        "roots": problem.import_roots,
        "inputs": [check.inputs for check in problem.check if check.inputs],
        "calls": [check.calls for check in problem.check if check.calls],
        "timed": [benchmark.inputs for benchmark in problem.bench if benchmark.inputs],
    }


def test_a_file_at_the_top_of_its_repository_needs_no_other_paths(tmp_path: Path) -> None:
    problem = load_problem(write(tmp_path, WHOLE))
    assert resolve_paths(problem, tmp_path) == problem


def test_a_file_in_a_part_of_a_repository_means_that_part(tmp_path: Path) -> None:
    folder = tmp_path / "examples" / "toposort"
    folder.mkdir(parents=True)
    resolved = resolve_paths(load_problem(write(folder, WHOLE)), tmp_path)
    assert paths_of(resolved) == {
        "cwd": "examples/toposort",
        "editable": ("examples/toposort/src/**/*.py",),
        "roots": ("examples/toposort/src",),
        "inputs": ["examples/toposort/benchmarks/inputs.py:graph_1k"],
        "calls": ["examples/toposort/cases/toposort.json"],
        "timed": ["examples/toposort/benchmarks/inputs.py:graph_1k"],
    }
    assert resolved.check[0].command[-1] == "tests/"  # commands start in that folder
    assert resolved.python == ".venv/bin/python"


def test_cwd_leads_to_a_part_of_the_repository_from_a_file_at_its_top(tmp_path: Path) -> None:
    problem = load_problem(write(tmp_path, WHOLE + "cwd: packages/a\n"))
    resolved = resolve_paths(problem, tmp_path)
    assert resolved.cwd == "packages/a"
    assert resolved.editable == ("packages/a/src/**/*.py",)


def test_a_file_outside_of_every_repository_leads_to_one(tmp_path: Path) -> None:
    (tmp_path / "problems").mkdir()
    (tmp_path / "other" / "part").mkdir(parents=True)
    text = WHOLE.replace("repo: .", "repo: ../other")
    assert (
        resolve_paths(load_problem(write(tmp_path / "problems", text)), tmp_path / "other").cwd
        == "."
    )
    text = WHOLE.replace("repo: .", "repo: ../other/part")
    inside = resolve_paths(load_problem(write(tmp_path / "problems", text)), tmp_path / "other")
    assert inside.editable == ("part/src/**/*.py",)
    text = WHOLE.replace("repo: .", f"repo: {tmp_path / 'other'}")
    assert resolve_paths(load_problem(write(tmp_path, text)), tmp_path / "other").cwd == "."


def test_a_project_outside_of_the_repository_is_refused(tmp_path: Path) -> None:
    problem = load_problem(write(tmp_path, WHOLE))
    with pytest.raises(StudyError, match=r"repo: .* doesn't lie in the repository"):
        resolve_paths(problem, tmp_path / "inside")


def test_links_on_the_way_to_the_project_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "real" / "part").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "real" / "part", WHOLE)
    problem = CodeProblem(
        problem_id="p", check=(Check(command=("x",)),), folder=tmp_path / "link" / "part"
    )
    for top in ("real", "link"):
        assert resolve_paths(problem, tmp_path / top).cwd == "part"


def test_patterns_that_leave_out_keep_their_mark_and_folders_are_taken_literally(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a[1]" / "b*\\"
    folder.mkdir(parents=True)
    patterns = ("**/*.py", "./x.py", ":!gen/**", ":^a", ":(exclude)b")
    problem = CodeProblem(
        problem_id="p",
        check=(Check(command=("x",)),),
        editable=patterns,
        include=("data/*.so",),
        folder=folder,
    )
    prefix = r"a\[1\]/b\*\\/"
    (folder / "data").mkdir()
    (folder / "data/x.so").touch()
    resolved = resolve_paths(problem, tmp_path)
    assert list(tmp_path.glob(resolved.include[0])) == [folder / "data/x.so"]
    assert resolved.editable == (
        f"{prefix}**/*.py",
        f"{prefix}x.py",
        f":!{prefix}gen/**",
        f":^{prefix}a",
        f":(exclude){prefix}b",
    )


def test_the_example_is_a_problem_wherever_it_lies() -> None:
    problem = load_problem(EXAMPLE / "toposort.yaml")
    here = resolve_paths(problem, ROOT)
    assert here.cwd == "examples/toposort"
    for file in (*[check.inputs.partition(":")[0] for check in here.check], here.check[2].calls):
        assert (ROOT / file).exists()
    assert resolve_paths(problem, EXAMPLE).cwd == "."


# Schema and documentation.

SCHEMA = problem_schema()
SAMPLES: dict[type[Any], dict[str, Any]] = {
    CodeProblem: yaml.safe_load(WHOLE),
    Check: FUNCTION,
    Benchmark: {"name": "n", "call": "m:f", "inputs": "a.py:f"},
    Limits: {"memory_mb": 5},
}
PROBES: list[Any] = [
    *(
        None,
        True,
        0,
        1,
        -1,
        0.5,
        2,
        100_001,
        "",
        " ",
        "x",
        "a:b",
        "a.b:c.d",
        "a.py:b",
        "a:",
        "1:b",
        "auto",
    ),
    *("exit", "output", "code", "a.py:f", "/a.py:f", "../a.py:f", "a/../b.py:f", "..a.py:f"),
    *("..", ".", "a/..", "/a", "~/a", "C:/a", "a b", "..a", ":!a", ":x"),
    *(
        [],
        ["x"],
        [""],
        [1],
        [["x"]],
        ["../x"],
        ["/x"],
        [":!x"],
        [":!x", "y"],
        [":(icase)x"],
        ["a/.."],
    ),
    *(
        {},
        {"A": "b"},
        {"1": "b"},
        {"A": 1},
        {"FAIRTRIAL_X": "1"},
        {"HOME": "/"},
        {"HOMER": "/"},
        ["a b"],
        ["a /b"],
        [{}],
        [COMMAND],
        [FUNCTION],
    ),
    *([{"name": "x", "command": ["y"]}], [{"name": "x"}], {"memory_mb": 1}, {"memory_mb": 0}),
]


def validator_of(cls: type[Any]) -> jsonschema.Draft202012Validator:
    if cls is CodeProblem:
        return jsonschema.Draft202012Validator(SCHEMA)
    return jsonschema.Draft202012Validator(
        {"$ref": f"#/$defs/{cls.__name__}", "$defs": SCHEMA["$defs"]}
    )


def test_the_schema_is_itself_valid_and_plain_json() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert set(SCHEMA["$defs"]) == {"Check", "Benchmark", "Limits"}


@pytest.mark.parametrize("cls", RECORDS)
def test_schema_and_records_agree_on_every_field(cls: type[Any]) -> None:
    validator, sample = validator_of(cls), SAMPLES[cls]
    few = problem_with() if cls is CodeProblem else sample  # the rest would only take its time
    assert validator.is_valid(sample)
    cases = [{**few, field: probe} for field in field_types(cls) for probe in PROBES]
    cases += [{key: sample[key] for key in sample if key != field} for field in sample]
    cases += [{**sample, "unknwon": 1}, {}]
    verdicts = {True: 0, False: 0}
    for data in cases:
        expected = not mistakes_of(data, cls)
        assert validator.is_valid(data) == expected, (data, mistakes_of(data, cls))
        verdicts[expected] += 1
    assert min(verdicts.values()) > 5


@pytest.mark.parametrize("cls", RECORDS)
def test_every_field_is_described(cls: type[Any]) -> None:
    schema = SCHEMA if cls is CodeProblem else SCHEMA["$defs"][cls.__name__]
    docs = field_docs(cls)
    assert set(docs) == set(field_types(cls))
    for field in field_types(cls):
        assert schema["properties"][field]["description"] == docs[field]


def test_the_command_prints_either_schema(tmp_path: Path) -> None:
    shown = CliRunner().invoke(schema_command, ["--problem"])
    assert json.loads(shown.stdout) == SCHEMA
    out = tmp_path / "problem.schema.json"
    CliRunner().invoke(schema_command, ["--problem", "--out", str(out)])
    assert json.loads(out.read_text("utf-8")) == SCHEMA
    assert json.loads(CliRunner().invoke(schema_command, []).stdout)["title"] == "fairtrial study"


GUIDE = (ROOT / "docs/problems.md").read_text("utf-8")


@pytest.mark.parametrize("cls", RECORDS)
def test_every_field_is_in_the_guide(cls: type[Any]) -> None:
    section = GUIDE.partition(f"### {cls.__name__}\n")[2].partition("\n##")[0]
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    for name, text in field_docs(cls).items():
        row = re.search(rf"^\| `{name}` \| (.*) \| {re.escape(text)} \|$", section, re.M)
        assert row, name
        default = defaults[name]
        if isinstance(default, (bool, int, float)):
            assert json.loads(row[1]) == default, name


def test_the_guides_problems_can_be_read(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE, re.S)
    assert blocks
    for block in blocks:
        data = yaml.safe_load(block)
        assert mistakes_of(data if "problem_id" in data else problem_with(**data)) == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*field_types(CodeProblem), *field_types(Check)]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_a_file_holds_it_is_read_or_refused(data: Any) -> None:
    mistakes_of(data)
    mistakes_of({"problem_id": "p", "check": data} if not isinstance(data, dict) else data)

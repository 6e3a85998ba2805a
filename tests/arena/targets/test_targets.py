"""Targets: what is found for a function's name, what is recorded, and what is refused."""

import json
from dataclasses import replace

import anyio
import pytest
from repository_kit import write_files
from targets_kit import FILES, SETTINGS, find_hot_spots, make_shop, prepare

from fairtrial.arena import (
    evaluate_candidates,
    evaluate_candidates_sync,
    problem_files,
    targets,
)
from fairtrial.arena.model.candidates import Candidate
from fairtrial.core import StudyError


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return make_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(autouse=True)
def _inside(shop, monkeypatch):
    monkeypatch.chdir(shop)


def read_calls(draft):
    return json.loads((draft.folder / "calls.json").read_text())


def test_a_function_becomes_a_problem_with_tests_calls_and_larger_inputs(shop, tmp_path):
    draft = prepare("src/shop/cart.py::unique", tmp_path / "out")
    problem, warnings = problem_files.check_problem_file(draft.problem)
    assert warnings == []
    assert problem.editable == ("src/shop/cart.py",)
    assert problem.import_roots[0] == "src"
    assert problem.check[0].command[-1] == "tests/test_cart.py"
    assert [benchmark.inputs for benchmark in problem.bench] == [
        "makers.py:recorded",
        "makers.py:larger",
    ]
    calls = read_calls(draft)
    assert [0, 1, 2, 3, 4, 0, 1, 2, 3, 4] in [call["args"][0] for call in calls]
    assert [call["raises"]["type"] for call in calls if "raises" in call] == ["builtins.TypeError"]
    text = " ".join(draft.lines)
    assert "left out: 1 call: argument 1, of type list, can't be pickled" in text
    assert "100 times as many items" in text
    assert "reached by 6 tests" in text
    assert "fail on the base" not in text, "the recorder changes nothing"


@pytest.mark.slow
def test_the_problem_judges_candidates_wherever_its_files_lie(shop, tmp_path):
    draft = prepare("shop.cart:unique", tmp_path / "elsewhere")
    problem, _ = problem_files.check_problem_file(draft.problem)
    source = FILES["src/shop/cart.py"]
    good = source.replace("    seen = []\n", "    seen = list()\n", 1)
    wrong = source.replace("        if item not in seen:\n", "        if True:\n", 1)
    candidates = [
        Candidate("good", files={"src/shop/cart.py": good}),
        Candidate("wrong", files={"src/shop/cart.py": wrong}),
    ]

    async def judge():
        from dataclasses import replace

        settings = replace(SETTINGS, timing="none", audit=False, warm=False)
        return await evaluate_candidates(problem, candidates, settings=settings)

    judged = anyio.run(judge).judgements
    assert [judgement.rejection is None for judgement in judged] == [True, False]


def test_arguments_are_recorded_as_they_were_before_the_call(shop, tmp_path):
    (call,) = read_calls(prepare("shop.cart:drain", tmp_path / "out"))
    assert call["args"] == [[3, 4]]
    assert call["result"] == [3, 4]


def test_a_method_keeps_its_object_and_a_static_one_its_decorators(shop, tmp_path):
    (call,) = read_calls(prepare("shop.cart:Cart.total", tmp_path / "total"))
    assert "pickle" in call
    assert call["result"] == 6
    (call,) = read_calls(prepare("shop.cart:Cart.rounded", tmp_path / "rounded"))
    assert call["args"] == [2.4]


@pytest.mark.slow
def test_generators_and_coroutines_are_recorded_without_being_used_up(shop, tmp_path):
    assert len(read_calls(prepare("shop.cart:pairs", tmp_path / "pairs"))) == 1
    assert read_calls(prepare("shop.cart:fetch", tmp_path / "fetch"))[0]["result"] == 8


@pytest.mark.slow
def test_calls_that_the_base_does_not_reproduce_are_left_out_with_the_reason(shop, tmp_path):
    draft = prepare("shop.cart:draw", tmp_path / "out")
    assert not (draft.folder / "calls.json").exists()
    assert any("something else each time" in line for line in draft.lines)
    assert "pytest" in draft.problem.read_text()


@pytest.mark.slow
def test_type_hints_make_inputs_where_no_call_is_recorded(shop, tmp_path):
    draft = prepare("shop.cart:halves", tmp_path / "out")
    problem, _ = problem_files.check_problem_file(draft.problem)
    assert problem.bench[0].inputs == "makers.py:hinted"
    assert "list[int], int" in " ".join(draft.lines)


@pytest.mark.slow
def test_a_command_is_recorded_in_place_of_the_tests(shop, tmp_path):
    command = ["python", "-c", "from shop.cart import unused; unused([1, 2])"]
    (call,) = read_calls(prepare("shop.cart:unused", tmp_path / "out", command=command))
    assert call["args"] == [[1, 2]]


@pytest.mark.slow
def test_a_reexported_name_leads_to_the_file_that_defines_it(shop, tmp_path):
    draft = prepare("shop:distinct", tmp_path / "out")
    assert draft.target.text == "src/shop/cart.py::unique"


@pytest.mark.slow
def test_a_draft_is_used_again_and_an_edited_one_is_not_replaced(shop, tmp_path):
    first = prepare("shop.cart:drain", tmp_path / "out")
    assert first.is_new
    assert not prepare("shop.cart:drain", tmp_path / "out").is_new
    (first.folder / "makers.py").write_text("mine = 1\n")
    with pytest.raises(StudyError, match="was edited"):
        prepare("shop.cart:unique", tmp_path / "out")
    assert (first.folder / "makers.py").read_text() == "mine = 1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("src/shop/carts.py::unique", "there is no file"),
        ("src/shop/cart.py", "name a function in it: src/shop/cart.py::unique, src/shop/cart.py"),
        ("src/shop/cart.py::", "name a function in it: src/shop/cart.py::unique, src/shop/cart.py"),
        ("src/shop/cart.py::uniqe", "did you mean unique"),
        ("src/shop/cart.py::Cart", "name a method of it: Cart.__init__, Cart.size, Cart.total"),
        ("src/shop/cart.py::inner", "is defined inside outer"),
        ("src/shop/cart.py::Cart.size", "is a property"),
        ("src/shop/cart.py::Cart.__init__", "makes its own object"),
        ("src/shop/ignored.py::f", "git ignores"),
        ("tests/test_cart.py::test_total", "is protected"),
        ("json:dumps", "is not part of the repository"),
        ("shop.card:unique", "did you mean cart"),
        ("src/shop/cart.py::unused", "none of 8 tests reaches unused"),
    ],
)
def test_what_cannot_be_a_target_is_refused_in_one_line(shop, tmp_path, text, message):
    with pytest.raises(StudyError) as refused:
        prepare(text, tmp_path / "out")
    assert len(refused.value.mistakes) == 1
    assert message in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("a.py::f", True),
        ("a/b.py::C.m", True),
        ("shop.cart:Cart.total", True),
        ("problem.yaml", False),
        ("main", False),
        ("HEAD:src", True),
        ("main..HEAD", False),
    ],
)
def test_targets_are_told_from_files_and_revisions(text, is_one):
    assert targets.is_target(text) == is_one


@pytest.mark.slow
def test_hot_spots_are_ranked_with_their_tests_and_what_can_be_recorded(shop):
    found = find_hot_spots(shop)
    spots = {spot.target: spot for spot in found.spots}
    unique = spots["src/shop/cart.py::unique"]
    assert (unique.calls, unique.tests, unique.recordable) == (6, 6, 5)
    assert spots["src/shop/cart.py::Cart.size"].why_not == "a property"
    assert [spot.own_s for spot in found.spots] == sorted(
        (spot.own_s for spot in found.spots), reverse=True
    )
    assert not any("tests/" in spot.target for spot in found.spots)


@pytest.mark.slow
def test_hot_spots_of_a_command_that_runs_nothing_of_the_project_are_refused(shop):
    with pytest.raises(StudyError, match="runs no function of the project"):
        find_hot_spots(shop, ["python", "-c", "print(1)"])


def test_hot_spots_are_found_beside_a_test_file_that_cannot_be_imported(tmp_path):
    use = "from mod import f\n\n\ndef test_a():\n    f(1)\n"
    top = make_shop(tmp_path, {**UNUSABLE_TESTS, "test_a.py": use})
    found = find_hot_spots(top)
    assert [spot.target for spot in found.spots] == ["mod.py::f"]
    assert "No module named 'absent_thing'" in found.notes[0]
    assert len(found.notes[0]) < 200


UNUSABLE_TESTS = {
    "mod.py": "def f(x):\n    return x\n",
    "test_a.py": "def test_a():\n    assert True\n",
    "test_f.py": "import absent_thing\nfrom mod import f\n\n\ndef test_f():\n    f(1)\n",
}
LAYOUTS = {
    "tests beside a script": (
        {
            "stats.py": "def mean(xs):\n    return sum(xs) / len(xs)\n",
            "test_stats.py": "from stats import mean\n\n"
            "def test_mean():\n    assert mean([1, 3]) == 2\n",
        },
        "stats.py::mean",
    ),
    "a script alone": (
        {
            "tools/run.py": "def twice(x):\n    return 2 * x\n\n\nif __name__ == '__main__':\n"
            "    print(twice(21))\n"
        },
        "tools/run.py::twice",
    ),
    "doctests only": (
        {
            "text.py": 'def loud(s):\n    """\n    >>> loud("a")\n    \'A\'\n    """\n'
            "    return s.upper()\n"
        },
        "text.py::loud",
    ),
    "unittest in a package with relative imports": (
        {
            "app/__init__.py": "",
            "app/core.py": "from .base import ONE\n\ndef inc(x):\n    return x + ONE\n",
            "app/base.py": "ONE = 1\n",
            "app/tests/__init__.py": "",
            "app/tests/tests.py": "import unittest\nfrom ..core import inc\n\n"
            "class TestInc(unittest.TestCase):\n    def test_it(self):\n"
            "        self.assertEqual(inc(1), 2)\n",
        },
        "app/core.py::inc",
    ),
    "a namespace package": (
        {
            "ns/part/mod.py": "def neg(x):\n    return -x\n",
            "tests/test_mod.py": "from ns.part.mod import neg\n\n"
            "def test_neg():\n    assert neg(2) == -2\n",
        },
        "ns/part/mod.py::neg",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_functions_of_projects_of_all_layouts_are_recorded(tmp_path, monkeypatch, name):
    files, text = LAYOUTS[name]
    top = make_shop(tmp_path, files)
    monkeypatch.chdir(top)
    draft = prepare(text, tmp_path / "out")
    assert len(read_calls(draft)) == 1
    problem_files.check_problem_file(draft.problem)


def test_a_test_file_that_cannot_be_imported_is_named_where_no_other_reaches(tmp_path, monkeypatch):
    monkeypatch.chdir(make_shop(tmp_path, UNUSABLE_TESTS))
    with pytest.raises(StudyError) as refused:
        prepare("mod.py::f", tmp_path / "out")
    text = str(refused.value)
    assert "test_f.py can't be imported: ModuleNotFoundError: No module named 'absent_th" in text
    assert "install absent_thing for " in text


def test_tests_that_all_fail_are_told_by_their_error_alone(tmp_path, monkeypatch):
    files = {**UNUSABLE_TESTS, "conftest.py": "raise RuntimeError('not set up')\n"}
    monkeypatch.chdir(make_shop(tmp_path, files))
    with pytest.raises(StudyError, match="no test passes on the base") as refused:
        prepare("mod.py::f", tmp_path / "out")
    assert "exited with 4: RuntimeError: not set up; " in str(refused.value)
    assert len(str(refused.value)) < 500


def test_code_in_no_repository_is_a_project_by_its_folder(tmp_path, monkeypatch):
    files, text = LAYOUTS["a script alone"]
    write_files(tmp_path / "plain", {**files, "venv/pyvenv.cfg": "", "venv/big.py": "x = 1\n"})
    monkeypatch.chdir(tmp_path / "plain")
    draft = prepare(text, tmp_path / "out")
    assert len(read_calls(draft)) == 1
    faster = Candidate(
        "new", files={"tools/run.py": files["tools/run.py"].replace("2 * x", "x + x")}
    )
    settings = replace(SETTINGS, timing="none", audit=False)
    done = evaluate_candidates_sync(draft.problem, [faster], settings=settings)
    assert done.judgements[0].rejection is None
    assert any("is in no git repository: all of its files were copied" in n for n in done.notes)
    assert not (tmp_path / "plain" / ".git").exists()
    with pytest.raises(StudyError, match="no such file, folder or revision"):
        evaluate_candidates_sync(draft.problem, ["main"], settings=settings)
    with pytest.raises(StudyError, match=r"no revision 'main': .* is in no git repository"):
        evaluate_candidates_sync(draft.problem, ["main..HEAD"], settings=settings)


def test_a_folder_for_all_kinds_of_things_is_not_copied(tmp_path, monkeypatch):
    write_files(tmp_path, {"a.py": "def f():\n    return 1\n"})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(StudyError, match="move the code to a folder of its own, or type: git init"):
        prepare("a.py::f", tmp_path / "out")

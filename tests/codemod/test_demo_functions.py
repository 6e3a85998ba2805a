"""Textbook functions in several shapes: something is found in each, and they behave as before."""

from pathlib import Path

import pytest
from codemod_kit import call, load
from hypothesis import given, settings, strategies as st

from fairtrial_codemod.catalog import CATALOG, transform

FOLDER = Path(__file__).parents[2] / "benchmarks" / "demo_functions"
NUMBERS = st.lists(st.integers(-9, 9), max_size=12)
ARTICLES = st.lists(
    st.fixed_dictionaries({"tags": st.lists(st.sampled_from("abcde"), max_size=5)}), max_size=4
)
EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(6, 9)), max_size=12)
SENTENCE = st.text("abeIKxy  ", max_size=20)

# function -> (module, transformations that must apply, inputs)
FUNCTIONS = {
    "sort_with_helper": ("topological_sort", {"prepend"}, [st.just(10), EDGES]),
    "sort_with_closure": ("topological_sort", {"prepend", "growing_set"}, [st.just(10), EDGES]),
    "sort_with_function": ("topological_sort", {"prepend"}, [st.just(10), EDGES]),
    "sort_with_temporary": ("bubble_sort", {"sort"}, [NUMBERS]),
    "sort_with_tuple": ("bubble_sort", {"sort"}, [NUMBERS]),
    "sort_until_done": ("bubble_sort", {"sort"}, [NUMBERS]),
    "sort_while_swapping": ("bubble_sort", {"sort"}, [NUMBERS]),
    "sort_by_insertion": ("bubble_sort", {"sort"}, [NUMBERS]),
    "sort_by_selection": ("bubble_sort", {"sort"}, [NUMBERS]),
    "sort_records": (
        "bubble_sort",
        {"sort"},
        [st.lists(st.fixed_dictionaries({"score": st.integers(0, 3), "id": st.integers()}))],
    ),
    "find_by_narrowing": ("common_tags", {"lookup_set"}, [ARTICLES]),
    "find_by_loops": ("common_tags", {"lookup_set", "growing_set"}, [ARTICLES]),
    "find_in_all": ("common_tags", {"growing_set"}, [ARTICLES]),
    "find_by_attribute": ("common_tags", {"lookup_set"}, [ARTICLES]),
    "translate_with_helper": ("pig_latin", {"inline", "join"}, [SENTENCE]),
    "translate_by_growing": ("pig_latin", {"growing_set", "join"}, [SENTENCE]),
    "translate_with_index": ("pig_latin", {"inline"}, [SENTENCE]),
}


def read(module):
    """The source of a module, without the mark that keeps linters off."""
    return (FOLDER / f"{module}.py").read_text("utf-8").removeprefix("# ruff: noqa\n")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_slow_pattern_is_found(name):
    module, expected, _ = FUNCTIONS[name]
    helpers = {"sort_with_helper": "Graph.visit", "sort_with_function": "_collect"}
    applied = {each.name: transform(read(module), each.name).scopes for each in CATALOG}
    for wanted in expected:
        scopes = {scope.partition(".")[0] for scope in applied[wanted]} | {*applied[wanted]}
        assert helpers.get(name, name) in scopes


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_function_behaves_as_before(name):
    module, _, inputs = FUNCTIONS[name]
    text = new = read(module)
    for each in CATALOG:
        new = transform(new, each.name).text
    assert new != text
    before, after = load(text, name), load(new, name)

    @settings(max_examples=80, deadline=None, derandomize=True, database=None)
    @given(st.tuples(*inputs))
    def check(arguments):
        assert call(before, arguments) == call(after, arguments)

    check()


def test_every_function_is_here():
    public = set()
    for path in FOLDER.glob("*.py"):
        lines = path.read_text("utf-8").splitlines()
        public |= {line[4:].partition("(")[0] for line in lines if line.startswith("def ")}
    assert {name for name in public if not name.startswith("_")} == {*FUNCTIONS}

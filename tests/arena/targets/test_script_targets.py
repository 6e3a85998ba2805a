"""Targets in scripts and notebooks without tests, and which larger inputs are of use."""

import json

import pytest
from targets_kit import make_shop, prepare

from fairtrial.arena import problem_files
from fairtrial.core import StudyError

BOOK = '''
import time
from dataclasses import dataclass


@dataclass
class Order:
    name: str


class Book:
    def __init__(self, orders):
        self.orders = orders

    @classmethod
    def of(cls, names):
        return cls([Order(name) for name in names])

    def names(self):
        return [order.name for order in self.orders]

    def find(self, name):
        return [order for order in self.orders if order.name == name]


class Special(Book):
    pass


def stamp():
    return time.time()


def burn(items):
    """Takes 2 ms for each item."""
    end = time.process_time() + 2e-3 * len(items)
    while time.process_time() < end:
        pass
    return len(items)


def sort_four(items):
    if len(items) != 4:
        raise ValueError("not four")
    return sorted(items)


if __name__ == "__main__":
    sort_four([4, 1, 9, 3])
    book = Book.of(["a", "b"] * 50)
    Special.of(["c"])
    print(book.names(), book.find("a"), stamp(), burn([1, 2, 3]))
'''
NOTEBOOK = """
# In[1]:
def smooth(values):
    return [sum(values[:at]) for at in range(len(values))]


def unused(values):
    return values


# In[2]:
print(smooth(list(range(20))))
"""
FILES = {
    "book.py": BOOK,
    "notebook.py": NOTEBOOK,
    "lib.py": "def helper(text):\n    return text\n",
    "run.py": "import lib\nif __name__ == '__main__':\n    print(lib.helper('x'))\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_shop(tmp_path_factory.mktemp("scripts"), FILES)


@pytest.fixture(autouse=True)
def _inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def read_calls(draft):
    return json.loads((draft.folder / "calls.json").read_text())


def test_objects_of_a_script_have_the_types_that_candidates_import(tmp_path):
    draft = prepare("book.py::Book.names", tmp_path / "out")
    (call,) = read_calls(draft)
    assert "pickle" in call
    assert call["result"] == ["a", "b"] * 50


def test_a_class_method_is_recorded_without_its_class(tmp_path):
    draft = prepare("book.py::Book.of", tmp_path / "out")
    (call,) = read_calls(draft)
    assert call["args"] == [["a", "b"] * 50]
    assert "left out: 1 call: it is called on a subclass of Book" in draft.lines


def test_a_notebook_that_calls_its_functions_is_recorded(tmp_path):
    (call,) = read_calls(prepare("notebook.py::smooth", tmp_path / "out"))
    assert call["args"] == [list(range(20))]


def test_seconds_of_the_clock_are_no_result_that_repeats(tmp_path):
    with pytest.raises(StudyError, match="the base gives something else each time"):
        prepare("book.py::stamp", tmp_path / "out")


def test_arguments_whose_size_costs_nothing_are_not_made_larger(tmp_path):
    lines = prepare("book.py::Book.find", tmp_path / "out").lines
    assert "no larger inputs: `name`: calls take no longer with larger inputs" in lines
    assert lines[-2].startswith(
        "one input alone can be known by heart, so no gain on it is adopted"
    )


def test_arguments_are_made_larger_only_as_far_as_calls_can_still_be_repeated(tmp_path):
    lines = prepare("book.py::burn", tmp_path / "out").lines
    assert "larger inputs, made from recorded calls: `items`, 10 times as many items" in lines


def test_one_recorded_call_is_not_timed_beside_inputs_that_vary(tmp_path):
    draft = prepare("book.py::burn", tmp_path / "larger")
    assert [item.name for item in problem_files.load_problem(draft.problem).bench] == ["larger"]
    draft = prepare("book.py::sort_four", tmp_path / "varied")
    assert "new inputs, made from recorded calls: `items`, of the same size" in draft.lines
    assert [item.name for item in problem_files.load_problem(draft.problem).bench] == ["varied"]


def test_the_script_that_mentions_a_function_is_named_where_nothing_calls_it(tmp_path):
    with pytest.raises(StudyError, match=r"--record -- python run\.py"):
        prepare("lib.py::helper", tmp_path / "out")
    with pytest.raises(StudyError, match="nothing that was run calls unused"):
        prepare("notebook.py::unused", tmp_path / "out")

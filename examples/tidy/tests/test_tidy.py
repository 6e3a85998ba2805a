from tidy import count_each, squeeze, summarise, unique, unique_rows


def test_names_are_squeezed() -> None:
    assert squeeze("  Ada   Lovelace ") == "Ada Lovelace"


def test_each_name_stays_once_in_its_order() -> None:
    assert unique(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]
    assert unique([]) == []


def test_each_row_stays_once_in_its_order() -> None:
    assert unique_rows([["b", 1], ["a", 2], ["b", 1]]) == [["b", 1], ["a", 2]]


def test_items_are_counted() -> None:
    assert count_each(["tea", "milk", "tea"]) == [2, 1, 2]


def test_a_summary_has_customers_and_what_came_back() -> None:
    told = summarise(["Ada  L.", "Bo", "Ada L."], ["tea", "milk", "milk"])
    assert told == "1. Ada L.\n2. Bo\nback most often: milk (2)"
    assert summarise([], []) == ""

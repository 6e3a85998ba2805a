"""Reports of mistakes: one line each, short enough to read, whatever stands in the file."""

import difflib

from fairtrial.core import Mistake, StudyError, did_you_mean, spell_count
from fairtrial.core.errors import LONGEST_NAME


def test_a_mistake_is_one_printable_line_whatever_it_quotes():
    mistake = Mistake(("a\nb",), "holds \x1b[2J and\r\nmore", "remove '\u2028\ud800'")
    text = str(StudyError([mistake, mistake], source="s.yaml"))
    assert (
        text.splitlines()
        == ["s.yaml: a\\nb: holds \\x1b[2J and\\r\\nmore; remove '\\u2028\\ud800'"] * 2
    )


def test_a_mistake_with_very_long_texts_stays_readable():
    long = "x" * 100_000
    text = str(Mistake((long,), long, did_you_mean(long, [long, long + "y"])))
    assert len(text) < 5_000


def test_a_hint_names_the_first_of_very_many():
    hint = did_you_mean("zebra", (f"f{index}" for index in range(2_000)))
    assert hint.startswith("known: f0, f1, ")
    assert hint.endswith(" and 1,970 more")
    assert did_you_mean("f19999", (f"f{index}" for index in range(2_000))) == (
        "did you mean 'f1999'?"
    )


def test_long_names_are_compared_with_nothing(monkeypatch):
    """That would take minutes."""
    compared = []

    def compare(word, names, **others):
        compared.extend([word, *names])
        return []

    monkeypatch.setattr(difflib, "get_close_matches", compare)
    names = ["x" * 5_000 + str(index) for index in range(1_000)]
    did_you_mean("x" * 5_000, [*names, "short"])
    assert "short" in compared
    assert max(map(len, compared)) <= LONGEST_NAME + 1


def test_a_count_is_spelled_by_its_size_where_nobody_would_read_its_digits():
    assert spell_count(0) == "0"
    assert spell_count(1_000_000_000) == "1,000,000,000"
    assert spell_count(10**15) == "some 10^15"
    assert spell_count(2**2000) == "some 10^602"
    assert spell_count(10**100_000) == "some 10^100000"

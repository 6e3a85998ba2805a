"""Messages of mistakes: one short, printable line each, whatever text they quote."""

import difflib

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.core.errors import MAX_NAME_CHARS


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


def test_long_names_are_not_compared_which_would_take_minutes(monkeypatch):
    compared = []

    def compare(word, names, **options):
        compared.extend([word, *names])
        return []

    monkeypatch.setattr(difflib, "get_close_matches", compare)
    names = ["x" * 5_000 + str(index) for index in range(1_000)]
    did_you_mean("x" * 5_000, [*names, "short"])
    assert "short" in compared
    assert max(map(len, compared)) <= MAX_NAME_CHARS + 1

"""The winner's patch without the changes that carry no part of its gain."""

from dataclasses import replace

import anyio
import pytest
from arena_kit import Watched, arena_of
from repository_kit import make_repository

from fairtrial.arena import (
    Arena,
    Benchmark,
    Candidate,
    Estimate,
    Measurement,
    Reason,
    Rejection,
    Verdict,
    delivery,
)
from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.delivery import minimization
from fairtrial.core import events

MODULE = "\n\n".join(
    f"def {name}(n):\n    return n + {number}\n" for number, name in enumerate("abc")
)
OTHER = "VALUE = 1\n"
FILES = {"src/mod.py": MODULE, "src/other.py": OTHER, "src/gone.py": "X = 1\n"}
NOTE = "it makes a, b and c faster"
FAST, NEEDED, IDLE = ("n + 0", "0 + n"), ("n + 1", "1 + n"), ("n + 2", "2 + n")


def change(*pairs):
    text = MODULE
    for old, new in pairs:
        text = text.replace(old, new)
    return text


@pytest.fixture
def minimize(tmp_path, monkeypatch):
    """What is left of a candidate's files, with the texts that were measured.

    Code is as fast as the number of parts of `gains` that it holds; to pass, it needs `NEEDED`
    where it has `FAST`.
    """

    def minimize(files, gains=(FAST[1],), confirms=True):
        measured, seen = [], []

        def estimate(text):
            ratio = 1.0 + sum(gain in text for gain in gains)
            return Measurement(
                Verdict.FASTER, Estimate(ratio, ratio - 0.01, ratio + 0.01, 6, 0.95), True
            )

        async def time_candidate(arena, timer, name, changes, *, label, **_):
            text = "".join(state.content.decode() for state in changes.files.values())
            measured.append(label)
            return estimate(text) if confirms or label != "least" else estimate("")

        async def judge(text, stage):
            seen.append(text)
            if FAST[1] in text and NEEDED[1] not in text:
                return Rejection(Reason.DIFFERENT, "a needs b")
            return None

        async def work():
            top = make_repository(tmp_path / "repo", FILES)
            async with arena_of(top) as (_, resources):
                bench = (Benchmark("b", "mod:a", "inputs.py:make"),)
                resources = replace(resources, problem=replace(resources.problem, bench=bench))
                rules = PathRules.from_problem(resources.problem)
                arena = Arena(resources, [Watched(judge)], rules, ())
                candidate = Candidate("best", files=files, note=NOTE)
                changes = await arena.resolve(candidate)
                judgement = await arena.judge(candidate, changes)
                text = "".join(state.content.decode() for state in changes.files.values())
                whole = delivery.CheckedChange(candidate, changes, judgement, estimate(text))
                return await delivery.minimize_changes(
                    arena, None, whole, name="0.0", emit=events.ignore_event
                )

        monkeypatch.setattr(minimization, "time_candidate", time_candidate)
        found = anyio.run(work)
        minimize.note = found and found.candidate.note
        left = found and {
            path: state.content.decode() for path, state in found.changes.files.items()
        }
        return left, measured

    return minimize


def test_places_without_a_part_in_the_gain_are_taken_out_and_the_rest_is_measured_again(minimize):
    files = {"src/mod.py": change(FAST, NEEDED, IDLE), "src/other.py": "VALUE = 2\n"}
    left, measured = minimize(files)
    assert left == {"src/mod.py": change(FAST, NEEDED)}
    assert measured[-1] == "least"
    assert minimize.note.startswith("(Some of this was taken out")
    assert minimize.note.endswith(NOTE)


def test_places_that_share_the_gain_stay(minimize):
    files = {"src/mod.py": change(FAST, NEEDED, IDLE)}
    left, measured = minimize(files, gains=(FAST[1], IDLE[1]))
    assert left is None
    assert "least" not in measured


def test_comments_are_taken_out_without_a_measurement(minimize):
    files = {"src/mod.py": change(FAST, NEEDED), "src/other.py": f"# a remark\n{OTHER}"}
    left, measured = minimize(files)
    assert left == {"src/mod.py": change(FAST, NEEDED)}
    assert "less-1" not in measured, "src/other.py is the second that is left out"


def test_a_smaller_change_that_fresh_sessions_do_not_confirm_is_not_taken(minimize):
    left, measured = minimize({"src/mod.py": change(FAST, NEEDED, IDLE)}, confirms=False)
    assert left is None
    assert measured[-1] == "least"


def test_a_change_of_one_place_is_left_as_it_is(minimize):
    assert minimize({"src/other.py": "VALUE = 2\n"}) == (None, [])

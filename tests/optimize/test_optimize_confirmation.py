"""Who is handed over: the first of the best that fresh sessions and fresh inputs bear out."""

import asyncio
from types import SimpleNamespace

import pytest

from fairtrial.arena import Estimate, Measurement, Reason, Rejection, Verdict
from fairtrial.core import LabError
from fairtrial.optimize import Watcher, confirmation as winner

GOOD = Measurement(Verdict.FASTER, Estimate(2.0, 1.8, 2.2, 6, 0.95), True)
SAME = Measurement(Verdict.EQUIVALENT, Estimate(1.0, 0.98, 1.02, 6, 0.95), False)
WRONG = Rejection(Reason.DIFFERENT, "f(3) gave 4")


@pytest.fixture
def crown(monkeypatch):
    """What comes of candidates, given what fresh sessions and fresh inputs say of each."""

    def crown(**found):
        said = []
        entries = [
            SimpleNamespace(id=f"{place}.0", tried=SimpleNamespace(estimate=estimate))
            for place, estimate in enumerate(found.get("first", [None] * len(found["timed"])))
        ]

        async def time_candidate(arena, bench, id, changes, **_):
            return found["timed"][int(id[0])]

        async def recheck(arena, changes):
            return found["checked"][int(changes[0])]

        async def look_at(stream, arena, watcher, entry, measured, doubts, out):
            return SimpleNamespace(id=entry.id, doubts=doubts)

        class Listener(Watcher):
            def say(self, text):
                said.append(text)

        monkeypatch.setattr(winner, "rank", lambda entries, min_effect: entries)
        monkeypatch.setattr(winner, "time_candidate", time_candidate)
        monkeypatch.setattr(winner, "recheck", recheck)
        monkeypatch.setattr(winner, "_look_at", look_at)
        stream = SimpleNamespace(entries=entries, changes={each.id: each.id for each in entries})
        arena = SimpleNamespace(problem=SimpleNamespace(min_effect=0.02))
        return asyncio.run(winner.crown(stream, arena, None, Listener())), said

    return crown


def test_who_is_out_is_told_with_what_the_fresh_look_said(crown):
    crowning, said = crown(timed=[SAME, GOOD, GOOD], checked=[None, WRONG, None])
    assert crowning.winner.id == "2.0"
    assert crowning.out == {
        "0.0": "measured again, in fresh sessions, it is equivalent, 1.00x [0.98, 1.02]",
        "1.0": "on inputs that nobody has seen, f(3) gave 4",
    }
    for id, why in crowning.out.items():
        assert f"{id} is out: {why}." in said


def test_none_holds(crown):
    broken = Rejection(Reason.CRASH, "it died of SIGSEGV")
    vetoed = Measurement(Verdict.FASTER, GOOD.estimate, False, vetoes=("b: slow to start",))
    crowning, _ = crown(timed=[broken, vetoed], checked=[])
    assert crowning.winner is None
    assert crowning.out == {
        "0.0": "measured again, it died of SIGSEGV",
        "1.0": "measured again, in fresh sessions, it is faster, 2.00x [1.80, 2.20], but: "
        "b: slow to start",
    }


def test_a_fresh_look_that_fails_through_no_fault_of_his_is_no_reason_to_take_the_next(crown):
    lost = Rejection(Reason.EVALUATOR, "no room")
    with pytest.raises(LabError, match=r"0\.0 looks best, and measuring it again failed: no room"):
        crown(timed=[lost, GOOD], checked=[None, None])
    crowning, _ = crown(timed=[GOOD], checked=[lost])
    assert (crowning.winner.id, crowning.winner.doubts, crowning.out) == ("0.0", ("no room",), {})


def test_it_is_said_why_the_one_that_looked_fastest_is_not_the_first(crown):
    slow, fast = (Estimate(ratio, ratio - 0.5, ratio + 9, 6, 0.95) for ratio in (2.0, 3.0))
    told = "0.0 can't be told from 1.0, and is the smaller change."
    assert crown(timed=[GOOD] * 2, checked=[None] * 2, first=[slow, fast])[1][0] == told
    assert told not in crown(timed=[GOOD] * 2, checked=[None] * 2, first=[fast, slow])[1]

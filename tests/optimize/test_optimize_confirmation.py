"""The winner: the first of the best that fresh sessions and fresh inputs confirm."""

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from fairtrial.arena import Adequacy, Estimate, Measurement, Reason, Rejection, Verdict, delivery
from fairtrial.core import LabError
from fairtrial.core.events import Remark
from fairtrial.optimize import confirmation, events as optimize_events

GOOD = Measurement(Verdict.FASTER, Estimate(2.0, 1.8, 2.2, 6, 0.95), True)
SAME = Measurement(Verdict.EQUIVALENT, Estimate(1.0, 0.98, 1.02, 6, 0.95), False)
WRONG = Rejection(Reason.DIFFERENT, "f(3) gave 4")


@dataclass(frozen=True)
class Evidence:
    """Stands for the evidence of a winner; its explanation is its notes."""

    notes: tuple[str, ...] = ()
    edits = delivery.FileEdits({}, b"")

    def explain(self):
        return "\n".join(self.notes)


@pytest.fixture
def confirm(monkeypatch):
    """What comes of candidates, given what fresh sessions and fresh inputs say of each."""

    def confirm(*, timed, checked, first=None, smaller=None):
        events = []
        entries = [
            SimpleNamespace(
                id=f"{lineage}.0",
                tried=SimpleNamespace(estimate=estimate),
                digest=str(lineage),
                name=f"candidate {lineage}",
            )
            for lineage, estimate in enumerate(first or [None] * len(timed))
        ]

        async def time_candidate(arena, bench, id, changes, **_):
            return timed[int(id[0])]

        async def check_again(arena, changes):
            return checked[int(changes[0])]

        async def gather_evidence(*_, notes, **__):
            return Evidence(notes)

        async def minimize_changes(arena, bench, whole, **_):
            return smaller

        monkeypatch.setattr(delivery, "minimize_changes", minimize_changes)
        monkeypatch.setattr(confirmation, "rank", lambda entries, min_effect: entries)
        monkeypatch.setattr(confirmation, "time_candidate", time_candidate)
        monkeypatch.setattr(delivery, "check_again", check_again)
        monkeypatch.setattr(delivery, "gather_evidence", gather_evidence)
        ids = {entry.id: entry.id for entry in entries}
        judgements = {entry.digest: None for entry in entries}
        scheduler = SimpleNamespace(
            entries=entries,
            changes=ids,
            candidates=ids,
            judgements=judgements,
            measured_again={},
        )
        arena = SimpleNamespace(problem=SimpleNamespace(min_effect=0.02), adequacy=Adequacy())
        confirmed = asyncio.run(confirmation.confirm_winner(scheduler, arena, None, events.append))
        return confirmed, events

    return confirm


def test_dropped_candidates_are_reported_with_the_result_of_fresh_sessions(confirm):
    confirmed, events = confirm(timed=[SAME, GOOD, GOOD], checked=[None, WRONG, None])
    assert confirmed.winner.id == "2.0"
    assert [note[:34] for note in confirmed.winner.explanation.splitlines()] == [
        "0.0 looked better, and is out: mea",
        "1.0 looked better, and is out: on ",
    ]
    assert confirmed.dropped == {
        "0.0": "measured again, in fresh sessions, it is equivalent, 1.00x [0.98, 1.02]",
        "1.0": "on inputs that nobody has seen, f(3) gave 4",
    }
    for id, why in confirmed.dropped.items():
        assert optimize_events.CandidateDropped(id, why) in events


def test_none_holds(confirm):
    broken = Rejection(Reason.CRASH, "it died of SIGSEGV")
    vetoed = Measurement(Verdict.FASTER, GOOD.estimate, False, vetoes=("b: slow to start",))
    confirmed, _ = confirm(timed=[broken, vetoed], checked=[])
    assert confirmed.winner is None
    assert confirmed.dropped == {
        "0.0": "measured again, it died of SIGSEGV",
        "1.0": "measured again, in fresh sessions, it is faster, 2.00x [1.80, 2.20], but: "
        "b: slow to start",
    }


def test_a_fresh_look_that_fails_through_no_fault_of_his_is_no_reason_to_take_the_next(confirm):
    lost = Rejection(Reason.EVALUATOR, "no room")
    with pytest.raises(LabError, match=r"0\.0 looks best, and measuring it again failed: no room"):
        confirm(timed=[lost, GOOD], checked=[None, None])
    confirmed, _ = confirm(timed=[GOOD], checked=[lost])
    assert (confirmed.winner.id, confirmed.dropped) == ("0.0", {})
    assert confirmed.winner.explanation == "no room"


def test_the_reason_why_the_fastest_looking_candidate_is_not_first_is_reported(confirm):
    slow, fast = (Estimate(ratio, ratio - 0.5, ratio + 9, 6, 0.95) for ratio in (2.0, 3.0))
    remark = Remark("0.0 can't be told from 1.0, and is the smaller change.")
    assert confirm(timed=[GOOD] * 2, checked=[None] * 2, first=[slow, fast])[1][0] == remark
    assert remark not in confirm(timed=[GOOD] * 2, checked=[None] * 2, first=[fast, slow])[1]


def test_a_smaller_change_that_is_as_fast_takes_the_place_of_the_best(confirm):
    faster = Measurement(Verdict.FASTER, Estimate(2.1, 2.0, 2.2, 6, 0.95), True)
    smaller = delivery.CheckedChange(None, "1", None, faster)
    confirmed, _ = confirm(timed=[GOOD], checked=[WRONG, None], smaller=smaller)
    assert confirmed.winner.estimate == faster.estimate
    assert "carry no part of the gain were taken out" in confirmed.winner.explanation


def test_the_whole_change_is_taken_if_the_smaller_one_fails_on_new_inputs(confirm):
    smaller = delivery.CheckedChange(None, "1", None, SAME)
    confirmed, _ = confirm(timed=[GOOD], checked=[None, WRONG], smaller=smaller)
    assert (confirmed.winner.estimate, confirmed.dropped) == (GOOD.estimate, {})
    assert "taken out" not in confirmed.winner.explanation

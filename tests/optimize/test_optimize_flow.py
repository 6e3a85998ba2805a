"""What the scheduler does with replies, verdicts, time and failures: the arena is simulated."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import anyio
import pytest
from optimize_kit import make_session

from fairtrial.arena import (
    Basis,
    Candidate,
    Changes,
    Check,
    CodeProblem,
    Failure,
    FileState,
    Judgement,
    Reason,
    Rejection,
    Verdict,
    events as arena_events,
)
from fairtrial.arena.slots import threads
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.core import LabError
from fairtrial.optimize import Brief, Proposer, Reply, Usage, events as optimize_events
from fairtrial.optimize.journal import VERDICT, JournalState, read_journal
from fairtrial.optimize.lineage import LoopRules
from fairtrial.optimize.loop import OptimizeLoop
from fairtrial.optimize.requests import ProposerClient
from fairtrial.optimize.scheduler import Scheduler
from fairtrial.study.agents.journal import Journal

SETTING = {"who": "script"}
USAGE = Usage("script", 10, 1, 0.01)


REQUESTS = {
    optimize_events.ProposalRequested: "asked",
    optimize_events.ProposalReceived: "replied",
    optimize_events.RequestWithdrawn: "withdrawn",
}


@dataclass
class Events:
    """Notes what happens, in order; lets others wait for it."""

    seen: list = field(default_factory=list)
    waiting: dict = field(default_factory=dict)

    def note(self, what):
        self.seen.append(what)
        self.waiting.setdefault(what, anyio.Event()).set()

    async def until(self, what):
        await self.waiting.setdefault(what, anyio.Event()).wait()

    def receive(self, event):
        if type(event) in REQUESTS:
            self.note(f"{REQUESTS[type(event)]} {event.kind.value}/{event.lineage}")
        elif isinstance(event, arena_events.CheckStarted):
            self.note(f"checking {event.candidate_id}")
        elif isinstance(event, arena_events.TimingProgress):
            self.note(f"{'timed' if event.sessions else 'timing'} {event.candidate_id}")
        elif isinstance(event, arena_events.CandidateJudged):
            self.note(f"judged {event.candidate_id}")


@dataclass
class Script(Proposer):
    """Answers by kind and lineage; may wait for something first, or fail."""

    events: Events
    texts: dict
    waits: dict = field(default_factory=dict)
    fails: dict = field(default_factory=dict)
    most_at_once: int = 8
    asked: Counter = field(default_factory=Counter)

    name = "script"

    async def propose(self, brief, request):
        name = f"{request.kind.value}/{request.lineage}"
        self.asked[name] += 1
        self.events.note(f"at work on {name}")
        if name in self.waits:
            await self.events.until(self.waits[name])
        if name in self.fails:
            raise self.fails[name]
        text = self.texts.get(name)
        if text is None:
            return Reply(usage=USAGE, refusal="nothing more")
        files = {"m.py": FileState(text.encode())}
        return Reply((Candidate(name, files=files),), USAGE)


@dataclass
class Arena:
    """`wrong` fails its check; any other passes, and is as fast as its length says."""

    events: Events
    waits: dict = field(default_factory=dict)
    fails: dict = field(default_factory=dict)

    problem = CodeProblem("p", check=(Check(command=("true",)),), budget_s=600)
    basis = Basis.TESTS
    tree = "t"
    vetoes = ()
    adequacy = None

    async def read_all(self, candidates):
        texts = [each.files["m.py"].content.decode() for each in candidates]
        changes = [Changes(each.files, text) for each, text in zip(candidates, texts, strict=True)]
        return [(each, f"+{each.digest}\n") for each in changes]

    async def judge(self, candidate, changes, begun):
        begun()
        if candidate.name in self.waits:
            await self.events.until(self.waits[candidate.name])
        if candidate.name in self.fails:
            raise self.fails[candidate.name]
        if "wrong" in changes.digest:
            failures = (Failure("check[0]", "test_it", "no"),)
            why = Rejection(Reason.TESTS, "1 of 1", failures=failures)
            return Judgement(
                candidate.name, changes.digest, Verdict.REJECTED, self.basis, rejection=why
            )
        return Judgement(candidate.name, changes.digest, Verdict.PASSED, self.basis)


class Timer:
    async def run(self, changes, label, first, count, budget_s):
        batch = SessionBatch(seconds=0.01)
        ratio = 1 / (1 + len(changes.digest))
        for number in range(first, first + count):
            batch.replicates.append((make_session(ratio * (1 + number % 3 / 1e3), number=number),))
        return batch


def optimize(script, arena, *, rules=None, journal=None, max_seconds=None, folder=None):
    """An optimization by a script: the scheduler when it is over, and what it raised."""
    journal = Journal() if journal is None else journal
    rules = rules or LoopRules(lineages=2, refinements=1)

    async def run():
        with anyio.fail_after(60):
            brief, earlier = Brief("p", "faster", {}), read_journal(journal, SETTING)
            client = ProposerClient(script, brief, journal, earlier, max_seconds, folder)
            emit = script.events.receive
            scheduler = Scheduler(arena, Timer(), OptimizeLoop(rules), client, emit)
            try:
                await scheduler.run()
            except Exception as error:
                return scheduler, error
            return scheduler, None

    return asyncio.run(run())


def order(events, *names):
    """Where they are in what was seen, in this order."""
    places = [events.seen.index(name) for name in names]
    assert places == sorted(places), events.seen
    return places


# -- overlapping (arena 16) --


def test_candidates_are_checked_and_timed_while_others_are_being_proposed():
    events = Events()
    script = Script(events, {"initial/0": "a", "initial/1": "b"}, waits={"initial/1": "timed 0.0"})
    scheduler, error = optimize(script, Arena(events))
    assert error is None
    order(events, "at work on initial/1", "checking 0.0", "timed 0.0", "replied initial/1")
    assert [entry.id for entry in scheduler.entries] == ["0.0", "1.0"]


def test_a_repair_enters_while_another_is_still_being_checked():
    events = Events()
    texts = {"initial/0": "slow", "initial/1": "wrong", "repair/1": "right"}
    arena = Arena(events, waits={"initial/0": "checking 1.1"})
    scheduler, error = optimize(Script(events, texts), arena)
    assert error is None
    order(events, "checking 0.0", "judged 1.0", "checking 1.1", "judged 0.0")
    assert {entry.tried.verdict for entry in scheduler.entries} == {
        Verdict.FASTER,
        Verdict.REJECTED,
    }


def test_a_proposer_is_asked_on_while_candidates_wait_for_the_clock():
    events = Events()
    texts = {"initial/0": "a", "initial/1": "wrong", "repair/1": "b"}
    arena = Arena(events, waits={"initial/1": "checking 0.0"})
    optimize(Script(events, texts), arena)
    order(events, "judged 1.0", "asked repair/1")


# -- mishaps: what is under way is paid for --


@pytest.mark.parametrize("error", [LabError("the network is down"), ValueError("a bug")])
def test_replies_to_other_requests_are_kept_when_one_fails(error):
    events, journal = Events(), Journal()
    script = Script(
        events,
        {"initial/0": "a", "initial/1": "b", "initial/2": "c"},
        waits={"initial/0": "at work on initial/2", "initial/1": "withdrawn initial/0"},
        fails={"initial/0": error},
    )
    rules = LoopRules(lineages=3, refinements=1)
    scheduler, raised = optimize(script, Arena(events), rules=rules, journal=journal)
    assert raised is error
    assert sorted(scheduler.judgements) == ["b", "c"]
    known = read_journal(journal, SETTING)
    assert sorted(known.verdicts) == ["b", "c"]
    assert len(known.replies) == 2
    # Nobody is asked again for what was answered.
    again = Script(Events(), {**script.texts})
    scheduler, raised = optimize(again, Arena(again.events), rules=rules, journal=journal)
    assert raised is None
    assert again.asked["initial/0"] == 1
    assert again.asked["initial/1"] == again.asked["initial/2"] == 0
    assert sorted(scheduler.judgements) == ["a", "b", "c"]


@pytest.mark.parametrize("where", ["check", "clock"])
def test_a_judge_that_fails_is_asked_again_later_and_others_are_settled(where, monkeypatch):
    events, journal = Events(), Journal()
    script = Script(events, {"initial/0": "a", "initial/1": "b"})
    arena = Arena(events)
    if where == "check":
        arena.fails["initial/0"] = OSError(28, "No space left on device")
    else:
        run = Timer.run

        async def fail(timer, changes, *given):
            if changes.digest == "a":
                raise OSError(28, "No space left on device")
            return await run(timer, changes, *given)

        monkeypatch.setattr(Timer, "run", fail)
    scheduler, raised = optimize(script, arena, journal=journal)
    monkeypatch.undo()
    assert "No space left" in str(raised) or scheduler.judgements["a"].rejection is not None
    assert scheduler.judgements["b"].verdict == Verdict.FASTER
    assert set(read_journal(journal, SETTING).verdicts) == {"b"}
    again = Script(Events(), script.texts)
    scheduler, raised = optimize(again, Arena(again.events), journal=journal)
    assert raised is None
    assert scheduler.judgements["a"].verdict == Verdict.FASTER
    assert not {"initial/0", "initial/1"} & again.asked.keys()


def test_what_was_timed_on_another_machine_is_timed_again_and_not_asked_for():
    class Elsewhere(Journal):
        def append(self, kind, data, **paid):
            if kind == VERDICT:
                data = {**data, "measurement": {**data["measurement"], "host": "elsewhere"}}
            super().append(kind, data, **paid)

    journal = Elsewhere()
    first = Script(Events(), {"initial/0": "a"})
    optimize(first, Arena(first.events), journal=journal)
    read = read_journal(journal, SETTING).verdicts["a"]
    assert (read.verdict, read.measurement) == (Verdict.PASSED, None)
    again = Script(Events(), first.texts)
    scheduler, raised = optimize(again, Arena(again.events), journal=journal)
    assert raised is None
    assert scheduler.judgements["a"].verdict == Verdict.FASTER
    assert not again.asked


def test_a_journal_that_is_full_ends_it_with_what_is_known():
    class Full(Journal):
        def append(self, kind, data, **paid):
            if kind == VERDICT:
                raise ValueError("one too many")
            super().append(kind, data)

    events = Events()
    scheduler, raised = optimize(Script(events, {"initial/0": "a"}), Arena(events), journal=Full())
    assert isinstance(raised, LabError)
    assert scheduler.judgements["a"].verdict == Verdict.FASTER


def test_what_waits_for_a_seat_when_it_stops_is_withdrawn_not_paid():
    events = Events()
    script = Script(events, {}, fails={"initial/0": LabError("down")}, most_at_once=1)
    scheduler, _ = optimize(script, Arena(events), rules=LoopRules(lineages=3))
    assert script.asked == {"initial/0": 1}
    assert events.seen.count("withdrawn initial/1") == events.seen.count("withdrawn initial/2") == 1
    assert scheduler.spent.tokens == 0


# -- time --


def test_when_time_is_over_nothing_is_asked_and_what_was_asked_is_judged(monkeypatch):
    events = Events()
    texts = {"initial/0": "a", "initial/1": "b", "refine/0": "c"}
    stop = Scheduler._stop
    monkeypatch.setattr(
        Scheduler, "_stop", lambda *told: (stop(*told), events.note("time is over"))
    )
    script = Script(events, texts, waits={"initial/0": "time is over"}, most_at_once=1)
    scheduler, raised = optimize(script, Arena(events), max_seconds=0.2)
    assert raised is None
    assert scheduler.why_over == "0.2 s are over"
    assert script.asked == {"initial/0": 1}
    assert scheduler.judgements["a"].verdict == Verdict.FASTER
    assert "withdrawn initial/1" in events.seen


def test_time_is_that_of_all_attempts_and_what_is_known_is_used_first():
    """Killed after its time: a later attempt does what is paid for, and asks nobody."""
    journal = Journal()
    events = Events()
    texts = {"initial/0": "a", "initial/1": "wrong", "repair/1": "b", "refine/0": "c"}
    optimize(Script(events, texts), Arena(events), journal=journal)
    known = read_journal(journal, SETTING)
    assert 0 < known.seconds < 60
    # As after a kill: the last verdicts and replies are not there.
    kept = [each for each in journal.entries() if each.kind != VERDICT]
    kept = [each for each in kept if "refine" not in str(each.data.get("key"))]
    cut = Journal()
    for each in kept:
        cut.append(each.kind, each.data)
    again = Script(Events(), texts)
    scheduler, raised = optimize(
        again, Arena(again.events), journal=cut, max_seconds=known.seconds / 1e6
    )
    assert raised is None
    assert again.asked == {}
    assert sorted(scheduler.judgements) == ["a", "b", "wrong"]  # the repair is known, and used
    assert scheduler.why_over.endswith("s are over")


def test_seconds_of_attempts_add_up_and_those_of_other_settings_do_not_count():
    journal = Journal()
    read_journal(journal, {"who": "another"})
    journal.append(VERDICT, {"attempt": "x", "at_s": 100.0})
    read_journal(journal, SETTING)
    for attempt, at_s in (("a", 1.0), ("a", 2.0), ("b", 0.5)):
        journal.append(VERDICT, {"attempt": attempt, "at_s": at_s})
    assert read_journal(journal, SETTING) == JournalState(seconds=2.5)  # and no verdict can be read


def test_nothing_is_asked_for_that_could_not_be_kept(tmp_path, monkeypatch):
    """On a full disk an answer would be paid for, and lost."""
    rooms = iter([True, False])
    monkeypatch.setattr(threads, "has_room", lambda folder: next(rooms))
    events = Events()
    script = Script(events, {"initial/0": "a", "initial/1": "b"})
    scheduler, error = optimize(script, Arena(events), folder=tmp_path)
    assert isinstance(error, NoRoomError)
    assert "no room is left to keep answers in" in str(error)
    assert len(scheduler.replies) == 1
    assert [name for name in events.seen if name.startswith("replied")] == ["replied initial/0"]

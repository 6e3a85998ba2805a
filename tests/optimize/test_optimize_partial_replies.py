"""What is paid for on the way to a reply is in the journal before more is paid, and never again."""

from dataclasses import dataclass, field

import pytest
from test_optimize_flow import SETTING, Arena, Events, Script, optimize

from fairtrial.core import LabError
from fairtrial.optimize import Reply, Usage
from fairtrial.optimize.journal import PARTIAL, read_journal
from fairtrial.optimize.lineage import LoopRules
from fairtrial.optimize.proposers.replay import Replay
from fairtrial.study.agents.journal import Journal

FIRST = Usage("script", 100, 10, 0.25, 1.0)
BOTH = Usage("script", 300, 30, 0.75, 2.0)
ONE_LINEAGE = LoopRules(lineages=1, refinements=0)


@dataclass
class TwoSteps(Script):
    """Pays once, keeps that, pays again, unless its network is down; told how often it paid."""

    is_down: bool = False
    firsts: list = field(default_factory=list)

    async def propose_in_parts(self, brief, request, earlier, keep):
        self.firsts.append(earlier)
        if earlier is None:
            keep(Reply(usage=FIRST, refusal="hm", exchange=({"said": "hm"},)))
        if self.is_down:
            raise LabError("the network is down")
        reply = await self.propose(brief, request)
        return Reply(reply.candidates, BOTH)


def attempt(journal, *, max_seconds=None, **fields):
    script = TwoSteps(Events(), {"initial/0": "a"}, **fields)
    arena = Arena(script.events)
    done = optimize(script, arena, rules=ONE_LINEAGE, journal=journal, max_seconds=max_seconds)
    return script, *done


def test_a_step_is_kept_and_handed_to_the_next_attempt():
    journal = Journal()
    script, scheduler, raised = attempt(journal, is_down=True)
    assert isinstance(raised, LabError)
    assert script.firsts == [None]
    assert journal.paid()[1] == (0.25, 100, 10)
    script, scheduler, raised = attempt(journal)
    assert raised is None
    assert [(each.refusal, each.usage) for each in script.firsts] == [("hm", FIRST)]
    assert (scheduler.spent.cost_usd, scheduler.spent.tokens) == (0.75, 330)
    # What the reply took includes the step, which is counted already.
    assert [entry.paid for entry in journal.entries() if any(entry.paid)] == [
        (0.25, 100, 10),
        (0.5, 200, 20),
    ]
    script, scheduler, _ = attempt(journal)
    assert (script.firsts, scheduler.spent.tokens) == ([], 330)


def test_a_partial_reply_counts_though_no_time_is_left_to_continue():
    journal = Journal()
    attempt(journal, is_down=True)
    known = read_journal(journal, SETTING)
    assert [each["reply"]["refusal"] for each in known.partial_replies.values()] == ["hm"]
    script, scheduler, raised = attempt(journal, max_seconds=known.seconds / 1e6)
    assert raised is None
    assert (script.firsts, scheduler.spent.tokens) == ([], 110)
    assert "replied initial/0" in script.events.seen
    assert [each["reply"]["refusal"] for each in scheduler.replies] == ["hm"]  # to be told again


def test_the_last_of_several_partial_replies_holds_everything():
    journal = Journal()
    read_journal(journal, SETTING)
    for paid in (1, 2):
        journal.append(PARTIAL, {"key": "initial/line 0/0/0", "paid": paid})
    assert read_journal(journal, SETTING).partial_replies["initial/line 0/0/0"]["paid"] == 2


def test_steps_of_another_setting_are_left_aside():
    journal = Journal()
    read_journal(journal, {"who": "another"})
    journal.append(PARTIAL, {"key": "initial/line 0/0/0"})
    assert read_journal(journal, SETTING).partial_replies == {}


@pytest.mark.parametrize(("name", "paid"), [("script", 0.75), (Replay.name, 0.0)])
def test_a_replayed_reply_is_not_paid_for_again(monkeypatch, name, paid):
    monkeypatch.setattr(TwoSteps, "name", name)
    journal = Journal()
    _, scheduler, _ = attempt(journal)
    assert scheduler.spent.cost_usd == 0.75, "it counts for the limits of the optimization"
    assert journal.paid()[1].cost_usd == paid

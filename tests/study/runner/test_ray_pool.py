"""The driver's side of a Ray cluster, beside a cluster whose actors do what a test says."""

from types import SimpleNamespace

import pytest

from fairtrial.core import LabError
from fairtrial.study.executors import Finished
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.frames import DONE, dump_outcome, load_assignment
from fairtrial.study.runner.executors.ray_pool import RayPool
from fairtrial.study.runner.executors.ray_worker import NodeFacts, read_versions
from fairtrial.testing.executor_driver import ListFeed
from fairtrial.testing.executor_work import ScriptedWork, assign, read_body

READY, DIES, NO_ROOM = "ready", "dies", "no room"
WORK = ScriptedWork()


class LostError(Exception):
    """What stands for the errors of Ray."""


class Answer(SimpleNamespace):
    """What an actor will answer, and whether it has."""

    __hash__ = object.__hash__


class Actor:
    """An actor whose calls return what they will answer, which stands for Ray's references."""

    def __init__(self, cluster, fate):
        self.cluster, self.fate = cluster, fate
        self.exchange = SimpleNamespace(remote=self._exchange)
        self.stop = SimpleNamespace(remote=lambda: self._answer(None))

    def _answer(self, value, *, is_there=True):
        return Answer(value=value, is_there=is_there, actor=self)

    def describe(self):
        if self.fate == DIES:
            return self._answer(LostError("the node is gone"))
        facts = NodeFacts("host", "node", 1, read_versions())
        return self._answer(facts, is_there=self.fate == READY)

    def _exchange(self, request=None):
        if request is None:
            return self._answer([])
        assignment = load_assignment(request.content)
        outcome = WORK.attempt(assignment, lambda data: None)
        return self._answer([(DONE, dump_outcome(assignment, outcome), b"", b"")])


class Cluster:
    """A cluster whose actors meet the fates given, in turn; the last one stands for all after."""

    window, errors, is_abandoned, has_head = 256, LostError, False, True

    def __init__(self, *fates):
        self.fates = list(fates)
        self.killed, self.waited = [], []

    def start_worker(self, demand=()):
        actor = Actor(self, self.fates.pop(0) if len(self.fates) > 1 else self.fates[0])
        return actor, actor.describe()

    def wait(self, answers, wait_s, count):
        self.waited = answers
        return [answer for answer in answers if answer.is_there]

    def get(self, answer):
        if isinstance(answer.value, Exception):
            raise answer.value
        return answer.value

    def kill(self, actor):
        self.killed.append(actor)

    def find_loss(self):
        return None

    def abandon_lost(self):
        return not self.has_head


def make_pool(cluster, count, slots):
    feed = ListFeed(assign(index) for index in range(count))
    return RayPool(WORK, AssignmentSource(feed), slots, cluster)


def run(pool):
    """Run a pool to its end; returns its results."""
    return [report for report in pool.run() if isinstance(report, Finished)]


def test_actors_that_die_at_once_when_they_start_dont_end_the_study():
    pool = make_pool(Cluster(*[DIES] * 8, READY), count=20, slots=8)
    assert sorted(read_body(report)["turn"] for report in run(pool)) == list(range(20))


def test_actors_that_die_again_and_again_when_they_start_end_the_study():
    pool = make_pool(Cluster(DIES), count=20, slots=8)
    with pytest.raises(LabError, match="Ray actors can't be started: the node is gone"):
        run(pool)


def test_actors_without_room_are_killed_and_not_waited_for_at_the_end():
    cluster = Cluster(READY, NO_ROOM)
    pool = make_pool(cluster, count=5, slots=4)
    assert len(run(pool)) == 5
    pool.end()
    assert {answer.actor.fate for answer in cluster.waited} == {READY}
    assert sorted(actor.fate for actor in cluster.killed) == [NO_ROOM] * 3 + [READY]


def test_nothing_is_asked_of_actors_whose_head_node_is_gone():
    cluster = Cluster(READY)
    pool = make_pool(cluster, count=1, slots=1)
    run(pool)
    cluster.has_head, cluster.waited = False, []
    pool.end()
    assert not cluster.waited
    assert not cluster.killed

"""The assignment feed: order, retries, limits."""

from array import array

from hypothesis import given, strategies as st

from fairtrial import AgentBinding, Factor, RunBudget, Study, build_design
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.runner.assignment_feed import LONGEST_WAIT_S, AssignmentFeed, StartConditions


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def make_feed(agents=None, replicates=5, clock=None, names=("a", "b"), **given):
    study = Study(
        "s",
        "s",
        factors=(Factor("x", levels=(1, 2)),),
        agent_specs=names,
        problem_ids=("p",),
        run_budget=RunBudget(replicates=replicates),
    )
    plan = RunPlan(study, build_design(study))
    order = array("Q", range(len(plan)))
    return AssignmentFeed(
        plan,
        order,
        iter(range(len(plan))),
        conditions=StartConditions(agents or {}),
        clock=clock or Clock(),
        **given,
    )


def drain(feed):
    """All that can be had right now."""
    got = []
    while not isinstance(item := feed(), float) and item is not None:
        got.append(item)
    return got, item


def test_hands_out_every_run_once_in_order_and_then_says_that_there_is_no_more():
    feed = make_feed()
    got, end = drain(feed)
    assert [item.execution_index for item in got] == list(range(20))
    assert {item.attempt for item in got} == {1}
    assert end is None
    assert feed() is None


def test_what_is_under_way_is_known_until_it_is_finished():
    feed = make_feed()
    first, second = feed(), feed()
    assert set(feed.in_flight) == {first.execution_index, second.execution_index}
    assert feed.finish(first.execution_index)[0] is first
    assert set(feed.in_flight) == {second.execution_index}


def test_a_retry_comes_back_after_its_wait_with_the_next_number_and_before_what_is_new():
    clock = Clock()
    feed = make_feed(clock=clock)
    first = feed()
    feed.finish(first.execution_index)
    feed.retry(first, 4.0)
    assert feed().execution_index == 1
    clock.now += 4.0
    again = feed()
    assert (again.execution_index, again.attempt) == (first.execution_index, 2)


def test_a_retry_that_is_all_that_is_left_is_waited_for():
    clock = Clock()
    feed = make_feed(clock=clock)
    got, _ = drain(feed)
    feed.finish(got[0].execution_index)
    feed.retry(got[0], 7.0)
    assert feed() == 7.0
    clock.now += 7.0
    assert feed().execution_index == got[0].execution_index
    assert feed() is None


def test_no_wait_is_longer_than_a_minute():
    feed = make_feed()
    got, _ = drain(feed)
    feed.finish(0)
    feed.retry(got[0], 1e9)
    assert feed() == LONGEST_WAIT_S


def test_an_agent_at_its_limit_holds_no_other_agent_up():
    feed = make_feed(agents={"a": AgentBinding("m:f", max_parallel=2)})
    got, end = drain(feed)
    agents = [item.spec.agent_spec_ref for item in got]
    assert agents.count("a") == 2
    assert agents.count("b") == 10
    assert isinstance(end, float)
    one = next(item for item in got if item.spec.agent_spec_ref == "a")
    feed.finish(one.execution_index)
    assert feed().spec.agent_spec_ref == "a"
    assert isinstance(feed(), float)


def test_a_retry_of_an_agent_at_its_limit_holds_no_other_retry_up():
    clock = Clock()
    feed = make_feed(clock=clock, agents={"a": AgentBinding("m:f", max_parallel=1)})
    got, _ = drain(feed)
    assert [item.spec.agent_spec_ref for item in got].count("a") == 1
    theirs = next(item for item in got if item.spec.agent_spec_ref == "a")
    other = next(item for item in got if item.spec.agent_spec_ref == "b")
    for item in (theirs, other):
        feed.finish(item.execution_index)
    second = feed()  # of the first agent: it is at its limit again
    assert second.spec.agent_spec_ref == "a"
    feed.retry(theirs, 1.0)
    feed.retry(other, 2.0)
    clock.now += 3.0
    again = feed()
    assert (again.execution_index, again.attempt) == (other.execution_index, 2)
    assert isinstance(feed(), float)
    feed.finish(second.execution_index)
    again = feed()
    assert (again.execution_index, again.attempt) == (theirs.execution_index, 2)


def test_starts_within_a_minute_are_spread_over_it():
    clock = Clock()
    feed = make_feed(names=("a",), clock=clock, agents={"a": AgentBinding("m:f", max_per_minute=6)})
    assert feed().execution_index == 0
    assert feed() == 10.0
    clock.now += 9.0
    assert feed() == 1.0
    clock.now += 1.0
    assert feed().execution_index == 1
    clock.now += 60.0  # what wasn't used is not saved up
    assert feed().execution_index == 2
    assert feed() == 10.0


def test_a_pause_hands_out_nothing_and_ends_nothing():
    feed = make_feed()
    feed.is_paused = True
    assert isinstance(feed(), float)
    feed.is_paused = False
    assert feed().execution_index == 0


def test_a_stop_ends_it():
    feed = make_feed()
    feed()
    feed.is_stopped = True
    assert feed() is None


@given(
    st.lists(st.sampled_from(["take", "finish", "break", "wait"]), max_size=60),
    st.integers(1, 3),
    st.sampled_from([None, 1, 2]),
)
def test_whatever_happens_each_run_is_handed_out_once_per_attempt(steps, replicates, most):
    clock = Clock()
    limits = None if most is None else {"a": AgentBinding("m:f", max_parallel=most)}
    feed = make_feed(agents=limits, replicates=replicates, clock=clock)
    seen, finished, running = set(), set(), {}

    def take():
        item = feed()
        if item is not None and not isinstance(item, float):
            assert (item.execution_index, item.attempt) not in seen
            seen.add((item.execution_index, item.attempt))
            running[item.execution_index] = item
        return item

    for step in [*steps, *["drain"] * 200]:
        if step == "take" or (step == "drain" and not running):
            clock.now += 100.0 if step == "drain" else 0.0
            take()
        elif step in ("finish", "drain") and running:
            execution_index = min(running)
            feed.finish(execution_index)
            finished.add(execution_index)
            del running[execution_index]
        elif step == "break" and running:
            execution_index = min(running)
            feed.finish(execution_index)
            feed.retry(running.pop(execution_index), 1.0)
        elif step == "wait":
            clock.now += 5.0
        if most is not None:
            theirs = [r for r in running.values() if r.spec.agent_spec_ref == "a"]
            assert len(theirs) <= most
    assert finished == set(range(4 * replicates))

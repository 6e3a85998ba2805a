"""How agents are called: by their signature, which is inspected once."""

import functools
import string

import pytest
from hypothesis import given, strategies as st
from run_attempt_kit import CONDITION, PACKET, assignment, run

from fairtrial.compat.keyword_arguments import KEYWORD_ARGUMENTS
from fairtrial.core import StudyError
from fairtrial.study import ProblemPacket, Task, for_condition
from fairtrial.study.agents.call_forms import bind_agent

SPEC = assignment().spec
TASK = Task(PACKET, CONDITION, SPEC)
NATIVE = object()
NATIVE_TASK = Task(ProblemPacket("p", "f", "b", {"problem_object": NATIVE}), CONDITION, SPEC)
DEPENDENCIES = {
    "problem_packet": PACKET,
    "run_spec": SPEC,
    "condition": CONDITION,
    "seed": SPEC.seed,
}
EXPECTED = {
    "problem_packet": PACKET,
    "problem": PACKET,
    "brief": "find the gap",
    "run_spec": SPEC,
    "condition": CONDITION,
    "seed": SPEC.seed,
    "prompt": "find the gap",
    "input": "find the gap",
    "request_id": SPEC.run_id,
    "dependencies": DEPENDENCIES,
}


class Opaque:
    """Callable, and its signature can't be read, like that of some builtins."""

    __signature__ = "none"

    def __call__(self, task):
        return {}


def mistake_of(agent, options=None):
    with pytest.raises(StudyError) as caught:
        bind_agent(agent, options)
    return str(caught.value)


# -- Task agents --


def test_def_agent_task_gets_the_task_and_is_not_mistaken_for_a_factory():
    def agent(task):
        return task

    assert bind_agent(agent)(TASK) is TASK
    assert bind_agent(agent) is agent  # nothing stands between a run and such an agent


@pytest.mark.parametrize(
    "agent",
    [
        lambda t: t,
        lambda anything, /: anything,
        lambda *, only: only,
        lambda task, temperature=0.5: (task, temperature)[0],
        lambda t, seed=None, prompt="mine": t if (seed, prompt) == (None, "mine") else "filled",
        lambda optional=None: optional,
        lambda depth=1, task=None: task if depth == 1 else "shifted",
        lambda *everything: everything[0],
        lambda *everything, **more: everything[0] if not more else "more",
        functools.partial(lambda model, task: task if model == "m" else "lost", "m"),
        functools.partial(lambda model, t: t if model == "m" else "lost", model="m"),
    ],
)
def test_whatever_takes_one_argument_gets_the_task(agent):
    assert bind_agent(agent)(TASK) is TASK


def test_a_task_may_be_asked_for_together_with_keywords():
    def agent(task, seed, *, brief):
        return task, seed, brief

    assert bind_agent(agent)(TASK) == (TASK, SPEC.seed, "find the gap")


def test_methods_objects_and_wrappers_are_called_like_functions():
    class Agent:
        def __call__(self, task):
            return "called", task

        def answer(self, task):
            return "answered", task

    class Runner(Agent):
        def run(self, task):
            return "ran", task

    def shout(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    assert bind_agent(Agent())(TASK) == ("called", TASK)
    assert bind_agent(Agent().answer)(TASK) == ("answered", TASK)
    assert bind_agent(Runner())(TASK) == ("ran", TASK)  # `run` goes first
    assert bind_agent(shout(lambda task: task))(TASK) is TASK
    assert bind_agent(shout(lambda packet, number: (packet, number)))(TASK) == (PACKET, SPEC.seed)


# -- the ten keywords --


@given(st.sets(st.sampled_from(sorted(EXPECTED)), min_size=1), st.data())
def test_any_subset_of_the_ten_keywords_gets_what_it_asks_for(names, data):
    if names == {"condition"}:  # may be a factory: tested below
        return
    kinds = st.sampled_from(["named", "keyword_only", "defaulted"])
    chosen = {name: data.draw(kinds) for name in sorted(names)}
    first = [name for name in chosen if chosen[name] == "named"]
    rest = [f"{name}=None" if chosen[name] == "defaulted" else name for name in chosen
            if chosen[name] != "named"]  # fmt: skip
    parameters = ", ".join([*first, *(["*", *rest] if rest else [])])
    agent = eval(f"lambda {parameters}: dict(locals())")
    assert bind_agent(agent)(TASK) == {name: EXPECTED[name] for name in names}


def test_there_are_ten_keywords_and_each_is_tested():
    assert set(EXPECTED) == set(KEYWORD_ARGUMENTS)
    assert len(KEYWORD_ARGUMENTS) == 10


def test_a_packet_that_was_made_of_an_object_hands_that_object_on():
    def agent(problem, prompt, input, problem_packet, dependencies):
        return problem, prompt, input, problem_packet, dependencies

    *objects, packet, dependencies = bind_agent(agent)(NATIVE_TASK)
    assert objects == [NATIVE] * 3
    assert packet is NATIVE_TASK.problem
    assert dependencies["problem"] is NATIVE
    assert "problem" not in DEPENDENCIES


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (lambda prompt, /, *, request_id: (prompt, request_id), ("find the gap", SPEC.run_id)),
        (lambda problem, scale=2: (problem, scale), (PACKET, 2)),
        (lambda condition, seed: (condition, seed), (CONDITION, SPEC.seed)),
        (lambda depth=1, seed=0, /: (depth, seed), (TASK, 0)),
        (lambda **everything: everything, EXPECTED),
        (lambda packet, number: (packet, number), (PACKET, SPEC.seed)),
        (lambda packet, number, /: (packet, number), (PACKET, SPEC.seed)),
        (lambda packet, number, scale=2: (packet, number, scale), (PACKET, SPEC.seed, 2)),
    ],
)
def test_other_forms_of_the_keywords(agent, expected):
    assert bind_agent(agent)(TASK) == expected


def test_an_object_with_run_gets_the_keywords_of_its_run():
    class Agent:
        def run(self, prompt, *, request_id, dependencies):
            return prompt, request_id, dependencies

    class OfCondition:
        def run(self, condition):
            return condition

    assert bind_agent(Agent())(TASK) == ("find the gap", SPEC.run_id, DEPENDENCIES)
    assert bind_agent(OfCondition())(TASK) is CONDITION


# -- options --


def test_options_are_keyword_arguments_and_are_never_overridden():
    def agent(task, prompt, temperature=0.0):
        return task, prompt, temperature

    def by_keyword(brief, prompt):
        return brief, prompt

    made = bind_agent(agent, {"prompt": "be brief", "temperature": 0.7})
    assert made(TASK) == (TASK, "be brief", 0.7)
    assert bind_agent(by_keyword, {"prompt": "mine"})(TASK) == ("find the gap", "mine")
    partial = functools.partial(by_keyword, prompt="mine")
    assert bind_agent(partial)(TASK) == ("find the gap", "mine")


def test_an_option_that_the_agent_has_no_parameter_for_is_a_mistake():
    def writer(task, temperature=0.0, model="m"):
        return {}

    message = mistake_of(writer, {"temprature": 1, "zzz": 2})
    assert "options.temprature: " in message
    assert "did you mean 'temperature'?" in message
    assert "options.zzz: " in message
    assert "known: task, temperature, model" in message


def test_a_class_is_made_once_with_its_options():
    class Writer:
        def __init__(self, model, warmth=1):
            self.settings = model, warmth

        def __call__(self, task):
            return self.settings

    assert bind_agent(Writer, {"model": "m"})(TASK) == ("m", 1)
    assert "can't be made without model" in mistake_of(Writer)
    assert "options.modle: " in mistake_of(Writer, {"modle": "m"})


def test_a_class_that_cannot_be_made_is_a_mistake():
    class Broke:
        def __init__(self):
            raise RuntimeError("no licence")

        def __call__(self, task):
            return {}

    assert "can't be made: RuntimeError: no licence" in mistake_of(Broke)


# -- what is no agent --


@pytest.mark.parametrize("name", ["condition", "_condition"])
def test_a_function_that_looks_like_a_factory_gets_a_hint_to_for_condition(name):
    for source in (f"lambda {name}: 0", f"lambda {name}, model='m': 0", f"lambda {name}=None: 0"):
        message = mistake_of(eval(source))
        assert "for_condition(" in message
        assert "task.condition" in message


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        (lambda: {"a": 1}, "it takes no task"),
        (lambda packet, seed: {}, "nothing fills packet"),
        (lambda task, model: {}, "nothing fills model"),
        (lambda a, b, c: {}, "nothing fills a, b, c"),
        (lambda problem, *, budget: {}, "nothing fills budget"),
        (42, "a value of type int is no agent"),
        ({"name": "agent"}, "a value of type dict is no agent"),
        (Opaque(), "doesn't say which parameters"),
    ],
)
def test_what_cannot_be_called_is_said_when_it_is_bound(agent, says):
    message = mistake_of(agent)
    assert says in message
    assert ";" in message  # and what to do


# -- for_condition --


def test_for_condition_makes_a_fresh_agent_for_each_run():
    made = []

    def factory(condition):
        agent = type("Agent", (), {"run": lambda self, seed: (condition, seed)})()
        made.append(agent)
        return agent

    call = bind_agent(for_condition(factory))
    assert call(TASK) == call(TASK) == (CONDITION, SPEC.seed)
    assert len({id(agent) for agent in made}) == 2


def test_for_condition_takes_options_for_its_factory():
    def factory(condition, model):
        return lambda task: {"model": model, "x": condition.factor_assignments["x"]}

    assert bind_agent(for_condition(factory), {"model": "m"})(TASK) == {"model": "m", "x": 3}
    assert "options.modle" in mistake_of(for_condition(factory), {"modle": "m"})


def test_for_condition_wants_a_function():
    with pytest.raises(StudyError, match="takes a function, not str"):
        for_condition("module:callable")


def test_a_factory_that_gives_no_agent_fails_the_run():
    ran = run(for_condition(lambda condition: 42))
    assert ran.outcome.status == "failed"
    assert "a value of type int is no agent" in ran.body["error_info"]


# -- never twice --


def test_an_agents_own_typeerror_is_its_failure_and_it_is_called_once():
    calls = []

    def agent(packet, number):
        calls.append(packet)
        raise TypeError("agent() missing 1 required positional argument")

    ran = run(agent)
    assert calls == [PACKET]
    assert ran.outcome.status == "failed"
    assert ran.body["error_info"].startswith("TypeError: agent() missing")


@given(st.text(string.ascii_lowercase, min_size=1, max_size=12))
def test_one_parameter_of_any_other_name_gets_the_task(name):
    if name in KEYWORD_ARGUMENTS or not name.isidentifier():
        return
    try:
        agent = eval(f"lambda {name}: {name}")
    except SyntaxError:  # a word of Python's own
        return
    assert bind_agent(agent)(TASK) is TASK

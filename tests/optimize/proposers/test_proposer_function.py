"""A function as a proposer: all that it may return, and all that it may do wrong."""

import threading
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from hypothesis import given, strategies as st

from fairtrial.arena import Candidate, FileState, Verdict
from fairtrial.core import Broken, LabError, StudyError, build_record
from fairtrial.optimize import Brief, PreflightContext, Reply, Request, RequestKind, Tried, Usage
from fairtrial.optimize.proposers.function import FunctionProposer
from fairtrial.sandbox import HostLock

BRIEF = Brief("p", "faster", {"a.py": "x = 1\n"})
ABOUT = tuple(Tried(f"{n}.0", f"d{n}", "", Verdict.PASSED) for n in range(3))
HERE = Path(__file__).parent
HELD = Candidate("own", diff=b"diff", note="mine")


@dataclass
class Bench:
    lock: HostLock
    folder: Path = HERE


class Agent:
    """What the functions of these tests do, set by each of them."""

    does = None

    def propose(self, brief, request):
        return Agent.does(brief, request)


agent = Agent()
never_called = Agent


class Later:
    async def __call__(self, brief, request):
        await anyio.sleep(0)
        return Agent.does(brief, request)


later = Later()


async def proposes_later(brief, request):
    await anyio.sleep(0)
    return Agent.does(brief, request)


def hands_over(brief, request):
    return proposes_later(brief, request)


def takes_one(brief):
    return brief


def ask(does, request=None, use="agent.propose", **options):
    Agent.does = staticmethod(does)
    # Nobody's timing on this machine shall hold us up.
    proposer = FunctionProposer(f"{__name__}:{use}", waits=True, **options)
    return anyio.run(proposer.propose, BRIEF, request or Request(RequestKind.INITIAL, 1, 0))


ALL = ["agent.propose", "proposes_later", "hands_over", "later"]


@pytest.mark.parametrize("use", ALL)
def test_sync_or_async_it_gets_brief_and_request(use):
    request = Request(RequestKind.REFINE, 4, 2, about=ABOUT[:1])
    seen = []
    reply = ask(lambda *given: seen.append(given) or {"a.py": "x = 2\n"}, request, use)
    assert seen == [(BRIEF, request)]
    (candidate,) = reply.candidates
    assert candidate.files == {"a.py": FileState(b"x = 2\n")}
    label = f"{__name__}:{use}"
    assert (candidate.name, candidate.parent) == (f"{label}-4.2", "d0")
    assert candidate.origin == f"function: {label}"
    assert (reply.usage.model, reply.usage.cost_usd) == (label, 0.0)


def test_sync_ones_run_beside_the_loop_and_async_ones_in_it():
    seen = {}
    for use in ("agent.propose", "proposes_later"):
        ask(lambda *_, use=use: seen.update({use: threading.current_thread()}), use=use)
    assert seen["proposes_later"] is threading.main_thread()
    assert seen["agent.propose"] is not threading.main_thread()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (HELD, HELD),
        ("--- a\n+++ b\n", b"--- a\n+++ b\n"),
        (b"--- a\n", b"--- a\n"),
        ({"a.py": b"\xff"}, {"a.py": FileState(b"\xff")}),
        ({"a.py": FileState(b"l", is_link=True)}, {"a.py": FileState(b"l", is_link=True)}),
        (["--- a"], b"--- a"),
        ((HELD,), HELD),
    ],
)
def test_the_function_may_return_any_form_of_candidate(given, wanted):
    (candidate,) = ask(lambda *_: given).candidates
    assert wanted in (candidate, candidate.diff, candidate.files)


def test_several_for_several():
    request = Request(RequestKind.REFINE, 0, 1, about=ABOUT, wanted=3)
    reply = ask(lambda *_: ["--- a", None, {"a.py": "x"}], request, batch=True)
    first, second, third = reply.candidates
    assert (first.parent, second, third.parent) == ("d0", None, "d2")
    assert first.name != third.name


def test_a_reply_of_its_own_stays_as_it_is():
    own = Reply((HELD,), Usage("mine", 5, 6, 0.25), exchange=({"a": 1},))
    assert ask(lambda *_: own) is own


@pytest.mark.parametrize("nothing", [None, "", b"", {}, [], (), [None], [""]])
def test_nothing_to_propose(nothing):
    reply = ask(lambda *_: nothing)
    assert reply.candidates == ()
    assert reply.refusal.endswith("has nothing to propose")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (5, "returned a value of type int; expected a Candidate"),
        ({"a.py": 5}, "returned a value of type int for a.py; expected its new text"),
        ({5: "x"}, "returned a path of type int; expected text"),
        (["--- a", "--- b"], "returned 2 candidates, and 1 wanted"),
        (Reply((HELD, HELD)), "returned 2 candidates, and 1 wanted"),
        ("\ud800", "half of a surrogate pair"),
        ({"a.py": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_other_return_values_are_refusals(wrong, told):
    reply = ask(lambda *_: wrong)
    assert told in reply.refusal
    assert reply.candidates == ()


@pytest.mark.parametrize("use", ALL)
@pytest.mark.parametrize(
    "error", [ValueError("bad\nluck"), KeyError("x"), StopIteration(3), SystemExit(2)], ids=repr
)
def test_an_exception_of_the_function_is_a_refusal(use, error):
    def does(*_):
        raise error

    reply = ask(does, use=use)
    assert reply.candidates == ()
    assert f"{__name__}:{use} raised " in reply.refusal
    if isinstance(error, ValueError):
        assert "raised ValueError: bad\\nluck (test_proposer_function.py, line" in reply.refusal


@pytest.mark.parametrize("use", ALL)
@pytest.mark.parametrize("error", [LabError("no network"), Broken("no network")])
def test_lab_errors_and_broken_end_the_optimization(use, error):
    def does(*_):
        raise error

    with pytest.raises(LabError, match="no network"):
        ask(does, use=use)


def test_timing_waits_for_it_unless_it_only_waits_itself(tmp_path):
    lock = HostLock(tmp_path)

    async def is_free(options):
        seen = []

        async def watch():
            with anyio.move_on_after(60 if options else 0.1):
                async with lock.exclusive():
                    seen.append(True)

        async def look(brief, request):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch)

        Agent.does = staticmethod(look)
        proposer = FunctionProposer(f"{__name__}:agent.propose", **options)
        ready = await proposer.open(Bench(lock))
        assert (ready.most_at_once, ready.can_batch) == (1, False)
        await ready.propose(BRIEF, Request(RequestKind.INITIAL, 0, 0))
        return bool(seen)

    assert anyio.run(is_free, {"waits": True})
    assert not anyio.run(is_free, {})


def test_the_function_is_looked_for_in_the_folder_of_the_problem_first(tmp_path):
    text = "def propose(brief, request):\n    return '--- from here'\n"
    (tmp_path / "my_own_proposer.py").write_text(text)
    proposer = FunctionProposer("my_own_proposer:propose")
    with pytest.raises(StudyError, match="use: module 'my_own_proposer' can't be imported"):
        proposer.preflight(PreflightContext(Path()))
    proposer.preflight(PreflightContext(tmp_path))

    async def run():
        ready = await proposer.open(Bench(HostLock(tmp_path), tmp_path))
        return await ready.propose(BRIEF, Request(RequestKind.INITIAL, 0, 0))

    assert anyio.run(run).candidates[0].diff == b"--- from here"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"use": "agent"}, "use: expected module:function, got 'agent'"),
        ({"use": "a:b", "kinds": ["first"]}, "kinds[0]"),
        ({"use": "a:b", "most_at_once": 0}, "most_at_once: must be 1 or more"),
        ({"use": "a:b", "folder": "x"}, "folder: unknown key"),
        ({}, "'use' is missing"),
    ],
)
def test_mistakes(options, told):
    mistakes = []
    build_record(FunctionProposer, options, (), mistakes)
    assert told in "\n".join(map(str, mistakes))


def test_options():
    mistakes = []
    made = build_record(
        FunctionProposer, {"use": "a:b", "kinds": ["initial", "repair"]}, (), mistakes
    )
    assert mistakes == []
    assert [kind for kind in RequestKind if made.can(kind)] == [
        RequestKind.INITIAL,
        RequestKind.REPAIR,
    ]
    assert all(FunctionProposer("a:b").can(kind) for kind in RequestKind)
    made.preflight(PreflightContext(max_cost_usd=0.0))


def test_a_function_of_one_argument_is_refused_before_anything_starts():
    with pytest.raises(StudyError, match="must take two arguments: brief and request"):
        FunctionProposer(f"{__name__}:takes_one").preflight(PreflightContext(Path()))


VALUES = st.recursive(
    st.none() | st.text() | st.binary() | st.integers() | st.just(HELD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(VALUES)
def test_whatever_it_returns_there_is_a_reply(value):
    reply = ask(lambda *_: value)
    assert bool(reply.refusal) != bool(reply.candidates)
    assert len(reply.candidates) <= 1

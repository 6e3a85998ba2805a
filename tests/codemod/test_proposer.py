"""The codemod proposer: what it answers to which request."""

import difflib
import fcntl
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given, strategies as st

from fairtrial.arena import Difference, Failure, Verdict, delivery
from fairtrial.core import StudyError
from fairtrial.optimize import Brief, PreflightContext, Reply, Request, RequestKind, Tried
from fairtrial.sandbox import host_lock as quiet
from fairtrial_codemod import proposer as codemod, ruff
from fairtrial_codemod.catalog import BY_NAME, CATALOG
from fairtrial_codemod.proposer import CodemodProposer
from fairtrial_codemod.recipes import (
    Interrupted,
    RecipeStep,
    apply_recipe,
    format_recipe,
    parse_recipe,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "tidy"
SLOW = textwrap.dedent(
    '''
    """Slow things."""


    def unique(xs):
        seen = []
        for x in xs:
            if x not in seen:
                seen.append(x)
        return seen


    def glue(parts):
        text = ""
        for part in parts:
            text += part
        return text


    def drain(xs):
        queue = list(xs)
        out = []
        while queue:
            out.append(queue.pop(0))
        return out
    '''
).lstrip()
FILES = {"src/slow.py": SLOW, "README.md": "for x in xs:\n", "src/fine.py": "x = 1\n"}
SINGLES = ["growing_set", "deque", "join"]


@pytest.fixture(autouse=True, scope="module")
def _lock(tmp_path_factory):
    """A lock of our own: nobody's timing on this machine shall hold us up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quiet, "HOST_FOLDER", tmp_path_factory.mktemp("lock"))
        yield


def brief(files=FILES, **more):
    return Brief("slow", "make it fast", files, **more)


def ask(proposer=None, files=FILES, kind=RequestKind.INITIAL, line=0, benchmarks=(), **more):
    request = Request(kind, line, more.pop("step", 0), **more)
    return (proposer or CodemodProposer()).answer(brief(files, benchmarks=benchmarks), request)


def ask_all(proposer=None, files=FILES, **more):
    """All first proposals, until there is none."""
    found = []
    while not (reply := ask(proposer, files, line=len(found), **more)).refusal:
        found += reply.candidates
    return found, reply.refusal


def changed(candidate, files=FILES):
    """The files as a candidate has them."""
    return {**files, **{path: state.content.decode() for path, state in candidate.files.items()}}


def tried(candidate, *failures, name=None, files=FILES, digest="d1"):
    """The candidate as the optimiser tells of it."""
    new = changed(candidate, files)
    lines = []
    for path in files:
        old, now = (text[path].splitlines(keepends=True) for text in (files, new))
        lines += difflib.unified_diff(old, now, f"a/{path}", f"b/{path}")
    verdict = Verdict.REJECTED if failures else Verdict.PASSED
    told = candidate.name if name is None else name
    return Tried(told, digest, "".join(lines), verdict, failures=failures)


def first_named(name, **more):
    found, _ = ask_all(**more)
    return next(each for each in found if each.name == name)


def test_all_together_then_each_alone_then_pairs():
    found, refusal = ask_all()
    assert [each.name for each in found] == [
        "growing_set+deque+join",
        *SINGLES,
        *("growing_set+deque", "growing_set+join", "deque+join"),
    ]
    assert refusal == "there are only 7 first proposals for these files"
    for each in found:
        assert list(each.files) == ["src/slow.py"]
        assert each.origin == "codemod"
        assert each.parent is None
        done = [line for line in each.note.splitlines() if not line.startswith(delivery.ASSUMES)]
        assert len(done) == each.name.count("+") + 1
        for part in each.name.split("+"):
            assert f"{part}: src/slow.py, line " in each.note
    assert (
        "growing_set: src/slow.py, line 7: a set beside seen answers whether an item is in it"
        in found[0].note
    )


def assumed(candidate):
    lines = candidate.note.splitlines()
    return [
        line.removeprefix(delivery.ASSUMES) for line in lines if line.startswith(delivery.ASSUMES)
    ]


def test_each_assumption_is_noted_once():
    twice = SLOW + "\n\ndef other(xs, known):\n    return [x for x in xs if x in known]\n"
    files = {"slow.py": twice, "again.py": SLOW}
    both = next(each for each in ask_all(files=files)[0] if "lookup_set" in each.name)
    names = ("growing_set", "lookup_set", "join")
    hashed, searched, texts = (BY_NAME[name].assumes for name in names)
    assert assumed(both) == [hashed, searched, texts]
    assert assumed(first_named("join")) == [texts]
    assert assumed(first_named("deque")) == []
    # Also of what is added to a candidate later, after all that was done.
    first = first_named("deque")
    (more,) = ask(kind=RequestKind.REFINE, about=(tried(first),)).candidates
    assert more.name == "deque+growing_set"
    assert assumed(more) == [hashed]
    assert more.note.endswith(delivery.ASSUMES + hashed)


def test_assumptions_continue_after_the_words_before_them():
    known = {each.assumes for each in CATALOG} - {""}
    assert len(known) > 10
    for each in known:
        assert each[0].islower()
        assert not each.endswith(".")
        assert each.isprintable()


def test_what_the_sets_take_for_granted_is_true_of_the_code_they_make():
    """With what can't be hashed the candidates fail where the base didn't: that is what is said."""
    unique, asked = {}, {}
    exec(SLOW, unique)
    assert unique["unique"]([[1], [1]]) == [[1]]
    exec(changed(first_named("growing_set"))["src/slow.py"], unique)
    with pytest.raises(TypeError, match="unhashable"):
        unique["unique"]([[1], [1]])
    text = "def f(xs, known):\n    return [x for x in xs if x in known]\n"
    exec(changed(first_named("lookup_set", files={"a.py": text}), {"a.py": text})["a.py"], asked)
    assert asked["f"]([1, 2], [[1], 2]) == [2]
    with pytest.raises(TypeError, match="unhashable"):
        asked["f"]([[1]], [2])
    assert "TypeError" in BY_NAME["growing_set"].assumes


def test_small_ones_are_left_out_of_the_second_proposal():
    text = SLOW + "\n\ndef is_odd(word):\n    return word in ('a', 'b', 'c', 'd')\n"
    found, _ = ask_all(files={"slow.py": text}, proposer=CodemodProposer(most=3))
    assert [each.name for each in found] == [
        "growing_set+deque+join+constant_set",
        "growing_set+deque+join",
        "growing_set",
    ]
    assert "word in {'a', 'b', 'c', 'd'}" in changed(found[0])["slow.py"]
    assert changed(found[1])["slow.py"].endswith("return word in ('a', 'b', 'c', 'd')\n")
    small = CodemodProposer(families=("constant_set",))
    assert [each.name for each in ask_all(small, {"slow.py": text})[0]] == ["constant_set"]


def test_as_many_lines_as_there_are_first_proposals(tmp_path, monkeypatch):
    monkeypatch.setattr(quiet, "HOST_FOLDER", tmp_path)
    for proposer, known in (
        (CodemodProposer(), 7),
        (CodemodProposer(combinations=False), 3),
        (CodemodProposer(most=2), 2),
        (CodemodProposer(families=("sort",)), 0),
    ):
        assert anyio.run(proposer.count_first_proposals, brief()) == known
        assert len(ask_all(proposer)[0]) == known


def test_proposals_that_come_to_the_same_are_counted_once(tmp_path, monkeypatch):
    monkeypatch.setattr(quiet, "HOST_FOLDER", tmp_path)
    text = SLOW.partition("def drain")[0]
    cases = {
        "def has(d, x):\n    return x in d.keys()\n": 3,  # it may be no dictionary
        "def has(d, xs):\n    return sorted(list(xs))[0], sum(xs)\n": 7,
        "def other(xs):\n    seen = []\n    for x in xs:\n        seen += [x]\n": 7,
    }
    for more, known in cases.items():
        told = brief({"slow.py": text + more})
        found, _ = ask_all(files=told.files)
        assert len(found) == known
        assert anyio.run(CodemodProposer().count_first_proposals, told) == known


def test_combinations_families_and_their_number_can_be_chosen():
    assert [each.name for each in ask_all(CodemodProposer(combinations=False))[0]] == SINGLES
    chosen = CodemodProposer(families=("queues", "join"))
    assert [each.name for each in ask_all(chosen)[0]] == ["deque+join", "deque", "join"]
    assert len(ask_all(CodemodProposer(most=4))[0]) == 4


def test_wrong_options_are_reported():
    with pytest.raises(StudyError, match=r"families\[1\].*'sorf'.*did you mean 'sort'"):
        CodemodProposer(families=("join", "sorf"))
    with pytest.raises(StudyError, match="most: must be 1 or more"):
        CodemodProposer(most=0)


def test_functions_that_are_timed_are_changed_first():
    found, _ = ask_all(benchmarks=("python -m slow glue",))
    assert [each.name for each in found[1:4]] == ["join", "growing_set", "deque"]


def test_without_combinations_only_first_proposals_and_repairs_are_answered():
    assert all(map(CodemodProposer().can, RequestKind))
    alone = CodemodProposer(combinations=False)
    assert [kind for kind in RequestKind if alone.can(kind)] == [
        RequestKind.INITIAL,
        RequestKind.REPAIR,
    ]
    assert alone.most_at_once >= 1
    assert not alone.can_batch
    alone.preflight(PreflightContext())
    alone.preflight(PreflightContext(max_cost_usd=0.0))


def test_nothing_to_do_is_a_refusal():
    assert ask(files={"a.py": "x = 1\n"}).refusal == "no transformation applies to these files"


def test_files_that_can_not_be_parsed_are_skipped_and_reported():
    files = {**FILES, "src/broken.py": "def f(:\n"}
    note = "src/broken.py is left alone: it can't be parsed"
    reply = ask(files=files)
    assert "src/broken.py" not in reply.candidates[0].files
    assert reply.candidates[0].note.endswith(note)
    assert ask(files={"src/broken.py": "def f(:\n"}).refusal.endswith(note)


@pytest.mark.parametrize("kind", [RequestKind.REFINE, RequestKind.ADAPT])
def test_refining_adds_another_one(kind):
    start = first_named("deque")
    names = []
    for line in range(3):
        (candidate,) = ask(kind=kind, line=line, step=1, about=(tried(start),)).candidates
        assert candidate.parent == "d1"
        assert "popleft" in changed(candidate)["src/slow.py"]
        names.append(candidate.name)
    assert names == ["deque+growing_set", "deque+join", "deque+growing_set"]


def test_refining_does_not_repeat_what_its_line_has_tried():
    start, second = first_named("deque"), first_named("deque+join")
    about = tried(start)
    reply = ask(kind=RequestKind.REFINE, line=1, about=(about,), history=(tried(second), about))
    assert reply.candidates[0].name == "deque+growing_set"


def test_where_nothing_can_be_added_one_is_left_out_the_least_promising_first():
    about = tried(first_named("growing_set+deque+join"))
    history, names = [], []
    while not (
        reply := ask(kind=RequestKind.REFINE, about=(about,), history=tuple(history))
    ).refusal:
        names.append(reply.candidates[0].name)
        history.append(tried(reply.candidates[0]))
    assert names == ["growing_set+deque", "growing_set+join", "deque+join"]
    assert reply.refusal == "no further transformation applies"
    (other,) = ask(kind=RequestKind.REFINE, line=1, about=(about,)).candidates
    assert other.name == "growing_set+join"
    only = CodemodProposer(families=("deque",))
    assert ask(only, kind=RequestKind.REFINE, about=(tried(first_named("deque")),)).refusal


def test_neighbouring_lines_add_all_that_there_is():
    text = SLOW + SLOW.partition('"""\n')[2].replace("part in parts:", "part in parts[1:]:")
    text += "\n\ndef least(a, b):\n    return min(a, b)\n"
    files = {"slow.py": text}
    about = tried(first_named("deque", files=files), files=files)
    names = set()
    for line in range(3):  # as the loop asks: a line's number is also the replicate's
        more = {"line": line, "replicate": line, "about": (about,)}
        (candidate,) = ask(files=files, kind=RequestKind.REFINE, **more).candidates
        names.add(candidate.name)
    assert names == {"deque+growing_set", "deque+min_max", "deque+join"}


def test_a_candidate_that_no_recipe_names_is_neither_refined_nor_repaired():
    about = tried(first_named("deque"), name="by hand")
    for kind in (RequestKind.REFINE, RequestKind.REPAIR):
        assert ask(kind=kind, about=(about,)).refusal == "by hand isn't the name of a recipe"


@pytest.mark.parametrize(
    ("failure", "left"),
    [
        (Failure("check[0]", "slow:glue, case 7", "it differs"), "growing_set+deque"),
        (Failure("check[0]", "tests/test_slow.py::test_drain", "1 != 2"), "growing_set+join"),
        (Failure("check[0]", "test", "File slow.py, line 9, in unique\nTypeError"), "deque+join"),
        (Failure("check[0]", "test", "", (Difference("drain()", "1", "2"),)), "growing_set+join"),
        (Failure("check[0]", "something", "that says nothing"), "growing_set+deque"),
    ],
)
def test_repairing_takes_out_what_touches_the_failure_else_a_half(failure, left):
    about = tried(first_named("growing_set+deque+join"), failure)
    for line in range(3):  # whichever line it is
        request = {"line": line, "replicate": line, "about": (about,)}
        (candidate,) = ask(kind=RequestKind.REPAIR, **request).candidates
        assert candidate.name == left
        assert candidate.parent == "d1"


def test_a_step_that_fails_in_one_function_stays_in_the_others():
    again = SLOW.partition('"""\n')[2].replace("def unique", "def unique_rows")
    files = {"slow.py": SLOW + again.partition("def glue")[0].rstrip() + "\n"}
    failure = Failure("check[0]", "slow:unique_rows, case 7", "TypeError")
    about = tried(first_named("growing_set+deque+join", files=files), failure, files=files)
    (candidate,) = ask(files=files, kind=RequestKind.REPAIR, about=(about,)).candidates
    assert candidate.name == "growing_set(1)+deque+join"
    new = changed(candidate, files)["slow.py"]
    assert new.count("seen_set = set()") == 1
    assert new.partition("def unique_rows")[2] == files["slow.py"].partition("def unique_rows")[2]


def test_repairs_end():
    about = tried(first_named("deque+join"), Failure("check[0]", "no idea", "wrong"))
    history, names = [], []
    while not (
        reply := ask(kind=RequestKind.REPAIR, about=(about,), history=tuple(history))
    ).refusal:
        names.append(reply.candidates[0].name)
        history.append(tried(reply.candidates[0]))
    assert names == ["deque", "join"]
    assert reply.refusal == "nothing is left of it if what failed is taken out"


def test_a_transformation_of_several_functions_is_repaired_function_by_function():
    text = SLOW + "\n\n" + SLOW.replace("def glue", "def glue2").partition('"""\n')[2]
    files = {"slow.py": text.replace("def unique", "def other", 1)}
    about = first_named("join", files=files)
    told = tried(about, Failure("check[0]", "slow:glue2", "differs"), files=files)
    (candidate,) = ask(files=files, kind=RequestKind.REPAIR, about=(told,)).candidates
    assert parse_recipe(candidate.name) == (RecipeStep("join", frozenset({2})),)
    before, after = text.split("def glue2"), changed(candidate, files)["slow.py"].split("def glue2")
    assert before[1] == after[1]
    assert before[0] != after[0]
    again = tried(candidate, Failure("check[0]", "slow:glue", "differs"), files=files)
    assert ask(files=files, kind=RequestKind.REPAIR, about=(again,)).refusal


def answer_all():
    """Answers to requests of all kinds, as plain data."""
    found, _ = ask_all()
    about = tried(found[0], Failure("check[0]", "slow:glue", "differs"))
    found += ask(kind=RequestKind.REFINE, about=(tried(found[1]),)).candidates
    found += ask(kind=RequestKind.REPAIR, about=(about,)).candidates
    return [[each.name, each.note, changed(each)] for each in found]


def test_answers_are_the_same_in_every_process():
    code = "import json, test_proposer as this; print(json.dumps(this.answer_all()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert len(told) == 9
    assert told == answer_all()


def test_a_missing_ruff_is_reported(monkeypatch):
    monkeypatch.setattr(ruff, "find_ruff", lambda: None)
    monkeypatch.setattr(codemod, "find_ruff", lambda: None)
    text = "def f(xs):\n    return sorted(list(xs))\n"
    assert ruff.fix_some(text).text == text
    assert ask().candidates[0].note.endswith("ruff is not installed: its fixes are left out")


def test_the_configuration_of_the_project_does_not_matter_to_ruff(tmp_path, monkeypatch):
    (tmp_path / "ruff.toml").write_text("exclude = ['*']\nlint.ignore = ['C414']\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUFF_CONFIG", str(tmp_path / "ruff.toml"))
    assert ruff.fix_some("sorted(list(x))\n").text == "sorted(x)\n"
    assert ruff.fix_some("def f(:\n").text == "def f(:\n"
    assert list(tmp_path.iterdir()) == [tmp_path / "ruff.toml"]


def example_files():
    paths = sorted((EXAMPLE / "src").rglob("*.py"))
    return {str(path.relative_to(EXAMPLE)): path.read_text("utf-8") for path in paths}


def test_the_example_gets_sets_and_still_passes_its_tests(tmp_path):
    files = example_files()
    timed = ("names: tidy:unique", "items: tidy:count_each")
    candidate = ask(files=files, benchmarks=timed).candidates[0]
    assert candidate.name == "growing_set+scan_index"
    new = changed(candidate, files)
    assert "kept_set.add(name)" in new["src/tidy/cleaning.py"]
    assert "items_counts[item]" in new["src/tidy/summary.py"]
    for folder in ("src", "tests"):
        for path in (EXAMPLE / folder).rglob("*.py"):
            place = tmp_path / path.relative_to(EXAMPLE)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(path.read_text("utf-8"), "utf-8")
    for path, text in new.items():
        (tmp_path / path).write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path,
        env={
            "PYTHONPATH": "src",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_set_compares_far_less():
    path = "src/tidy/cleaning.py"
    files = {path: example_files()[path]}
    new = changed(ask(files=files).candidates[0], files)[path]
    counts = []
    for text in (files[path], new):
        names = {"__name__": "cleaning"}
        exec(compile(text, "cleaning.py", "exec"), names)
        compared = 0

        class Name(str):
            __slots__ = ()

            def __eq__(self, other):
                nonlocal compared
                compared += 1
                return str.__eq__(self, other)

            __hash__ = str.__hash__

        given = [Name(number) for number in range(100)]
        assert names["unique"](given + given) == given
        counts.append(compared)
    assert counts[1] < counts[0] / 5


def test_the_proposer_waits_while_another_process_times(tmp_path, monkeypatch):
    monkeypatch.setattr(quiet, "HOST_FOLDER", tmp_path)
    events = []

    async def propose():
        reply = await CodemodProposer().propose(brief(), Request(RequestKind.INITIAL, 0, 0))
        assert reply.candidates[0].name == "growing_set+deque+join"
        assert reply.usage.cost_usd == 0.0
        assert reply.usage.model == "codemod"
        events.append("proposed")

    async def main():
        async with anyio.create_task_group() as tasks, quiet.HostLock().exclusive():
            tasks.start_soon(propose)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            events.append("timed")

    anyio.run(main)
    assert events == ["timed", "proposed"]


def test_it_holds_the_shared_side_of_the_hosts_lock_while_it_works(tmp_path, monkeypatch):
    monkeypatch.setattr(quiet, "HOST_FOLDER", tmp_path)
    held = []

    def is_free(side):
        with (tmp_path / quiet.MAIN).open("rb") as file:
            try:
                fcntl.flock(file, side | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def answer(self, *_):
        held.append((is_free(fcntl.LOCK_SH), is_free(fcntl.LOCK_EX)))
        return Reply()

    monkeypatch.setattr(CodemodProposer, "answer", answer)
    anyio.run(CodemodProposer().propose, brief(), Request(RequestKind.INITIAL, 0, 0))
    assert held == [(True, False)]
    assert is_free(fcntl.LOCK_EX)


def test_the_event_loop_continues_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(quiet, "HOST_FOLDER", tmp_path)
    go = threading.Event()
    monkeypatch.setattr(CodemodProposer, "answer", lambda *_: Reply(refusal=str(go.wait(30))))
    replies = []

    async def propose():
        replies.append(await CodemodProposer().propose(brief(), Request(RequestKind.INITIAL, 0, 0)))

    async def main():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(propose)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            go.set()  # never reached if the loop had to wait for the answer

    anyio.run(main)
    assert [reply.refusal for reply in replies] == ["True"]


def test_the_proposer_yields_to_a_process_that_has_waited_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(quiet, "HOST_FOLDER", tmp_path)
    overdue = iter([False, True])
    asked = []

    def is_overdue(lease):
        asked.append(lease)
        return next(overdue, False)

    monkeypatch.setattr(quiet.Lease, "is_overdue", is_overdue)
    reply = anyio.run(CodemodProposer().propose, brief(), Request(RequestKind.INITIAL, 2, 0))
    assert reply.candidates[0].name == "deque"
    assert len(set(map(id, asked))) == 2
    with pytest.raises(Interrupted):
        apply_recipe({"a.py": SLOW}, (RecipeStep("join"),), lambda: True)


steps = st.builds(
    RecipeStep,
    st.sampled_from([each.name for each in CATALOG]),
    st.none() | st.frozensets(st.integers(0, 99), min_size=1, max_size=4),
)


@given(st.lists(steps, min_size=1, max_size=4).map(tuple))
def test_a_recipe_can_be_read_from_its_name(recipe):
    assert parse_recipe(format_recipe(recipe)) == recipe


@pytest.mark.parametrize("name", ["", "2.1", "sorf", "sort+", "sort()", "sort(1", "sort+by hand"])
def test_other_names_are_no_recipes(name):
    assert parse_recipe(name) is None


def test_cancelling_ends_the_thread_soon():
    """Ctrl-C must not wait until a large package has been transformed."""

    def work(must_stop):
        began.set()
        while not must_stop():
            time.sleep(0.001)
        raise Interrupted

    async def cancel():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(codemod._run_in_thread, quiet.HostLock(), work)
            await anyio.to_thread.run_sync(began.wait)
            tasks.cancel_scope.cancel()

    began = threading.Event()
    anyio.run(cancel)


def test_in_an_arena_it_takes_the_arenas_lock_which_says_whom_it_waits_for():
    taken = []

    class Lock:
        @asynccontextmanager
        async def shared(self):
            taken.append("shared")
            yield SimpleNamespace(is_overdue=lambda: False)

    async def ask():
        ready = await CodemodProposer().open(SimpleNamespace(lock=Lock()))
        counted = await ready.count_first_proposals(brief())
        return counted, await ready.propose(brief(), Request(RequestKind.INITIAL, 0, 0))

    counted, reply = anyio.run(ask)
    assert taken == ["shared", "shared"]
    assert (counted, len(reply.candidates)) == (
        anyio.run(CodemodProposer().count_first_proposals, brief()),
        1,
    )

"""Names that are bound several times: which bindings a mention may see, and what is done then."""

import contextlib
import textwrap

import pytest
from hypothesis import given, settings, strategies as st

from fairtrial_codemod.transforms.analysis.lives import lives_of
from fairtrial_codemod.transforms.analysis.scopes import scopes_of
from fairtrial_codemod.transforms.analysis.source import read_source
from fairtrial_codemod.transforms.catalogue import transform


def lines_of(text, name="x"):
    """The lines of each life of a name, with 0 for what was given, counted from the ``def``."""
    (scope,) = scopes_of(read_source(text))
    return [
        sorted(
            [0] * (each.parameter(name) is not None)
            + [mention.lineno - scope.function.lineno for mention in each.mentions(name)]
        )
        for each in lives_of(scope, name)
    ]


LIVES = {
    "branches": ("if c:\n x = []\n return x\nx = g()\nreturn x", [[2, 3], [4, 5]]),
    "joined": ("if c:\n x = []\nelse:\n x = g()\nreturn x", [[2, 4, 5]]),
    "one after the other": ("x = []\ng(x)\nx = list(x)\nreturn x", [[1, 2, 3], [3, 4]]),
    "comes round": ("x = []\nfor i in c:\n g(x)\n x = g()", [[1, 3, 4]]),
    "comes round by continue": (
        "x = []\nwhile c:\n g(x)\n if c:\n  x = g()\n  continue\n return",
        [[1, 3, 5]],
    ),
    "left by break": (
        "x = []\nwhile c:\n x = g()\n break\nelse:\n x = 1\nreturn x",
        [[1], [3, 6, 7]],
    ),
    "an error": ("try:\n x = g()\n g()\n x = []\nexcept E:\n g(x)\ng(x)", None),
    "at the end": ("try:\n x = g()\n x = []\n return x\nfinally:\n g(x)", None),
    "suppressed": ("with c:\n x = g()\n x = []\nreturn x", None),
    "a generator": ("x = []\nh = (x for i in c)\nx = 1\nreturn g(h)", [[1, 2, 3]]),
    "a sum": ("x = []\nh = sum(len(x) for i in c)\nx = 1\nreturn x", [[1, 2], [3, 4]]),
    "more": ("x = []\nx += [1]\nreturn x", [[1, 2, 3]]),
    "deleted": ("x = []\nif c:\n del x\nelse:\n x = 1\nreturn x", None),
    "thrown away": ("x = []\ng(x)\nx = None\nreturn c", None),
    "only said": ("x: list\nx = []\nreturn x", [[1], [2, 3]]),
    "by the way": ("x = []\nif c and (x := g()):\n pass\nreturn x", None),
    "a target": ("x = y[x] = g()\nx = 1\nreturn x", [[1, 1], [2, 3]]),
    "matched": ("x = []\nmatch c:\n case 1:\n  x = 1\nreturn x", None),
    "mended, at the end": (
        "try:\n g()\nexcept E:\n x = g()\n g()\n x = []\nfinally:\n g(x)",
        None,
    ),
    "left through the end": (
        "x = []\nwhile c:\n try:\n  x = g()\n  break\n finally:\n  x = 1\nreturn x",
        None,
    ),
    "mended": ("try:\n g()\n x = 1\nexcept E:\n x = []\nreturn x", None),
    "over at the end": (
        "if c:\n try:\n  x = []\n  return x\n finally:\n  g()\nelse:\n x = 1\nreturn x",
        [[3, 4], [8, 9]],
    ),
    "within itself": ("x = (x := g()) or g(x)\nreturn x", None),
    "said again": ("x = []\nx: list\nreturn x", [[1, 3], [2]]),
    "in the question": ("if x := g():\n g(x)\nelse:\n x = 1\nreturn x", None),
    "a zip": ("x = []\nh = zip(x for i in c)\nx = 1\nreturn g(h)", [[1, 2, 3]]),
    "an inner function": ("x = []\ndef h():\n return x\nx = 1", None),
}


@pytest.mark.parametrize("what", LIVES)
def test_the_lives_of_a_name(what):
    body, lives = LIVES[what]
    text = "def f(c):\n" + textwrap.indent(body, " ")
    (scope, *_) = scopes_of(read_source(text))
    if lives is None:
        assert lives_of(scope, "x") == [scope]
        return
    assert lines_of(text) == lives


def test_what_was_given_is_a_life_of_its_own():
    assert lines_of("def f(x):\n g(x)\n x = []\n g(x)") == [[0, 1], [2, 3]]
    assert lines_of("def f(x):\n if g():\n  x = []\n g(x)") == [[0, 2, 3]]


LEAVES = [
    "x = @",
    "x = @",
    "x += 0",
    "use(@, x)",
    "use(@, x)",
    "use(@, x)",
    "[use(@, x) for _ in 'ab']",
    "waiting.append(use(@, x) for _ in 'a')",
    "drain(waiting)",
    "fail()",
    "flip() and (x := @)",
    "return",
    "break",
    "continue",
]
BLOCKS = [
    ("if flip():", "else:"),
    ("if flip():",),
    ("for _ in range(2):",),
    ("for x in [@] * 2:", "else:"),
    ("while flip():", "else:"),
    ("while flip():",),
    ("try:", "except ValueError:"),
    ("try:", "finally:"),
    ("try:", "except NameError:", "else:", "finally:"),
    ("with quiet():",),
]


@st.composite
def programs(draw, depth=3, is_loop=False):
    """Statements that bind a name and look at it, and go all ways."""
    lines = ["x = @"] if depth == 3 and draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 4))):
        if depth and draw(st.booleans()):
            heads = draw(st.sampled_from(BLOCKS))
            for head in heads:
                repeats = heads[0].startswith(("for", "while")) and head is heads[0]
                inner = draw(programs(depth - 1, is_loop or repeats))
                lines += [head, *(" " + each for each in inner)]
        else:
            leaf = draw(st.sampled_from(LEAVES))
            lines.append(leaf if is_loop or leaf not in ("break", "continue") else "use(@, x)")
    return [*lines, "use(@, x)"] if depth == 3 else lines


@settings(max_examples=80, database=None, deadline=None, derandomize=True)
@given(programs(), st.lists(st.booleans(), max_size=20), st.lists(st.booleans(), max_size=9))
def test_who_sees_a_binding_is_of_the_same_life(lines, bits, failing):
    text = "def f():\n" + "".join(
        f" {line}\n".replace("@", str(at)) for at, line in enumerate(lines, 1)
    )
    groups = lines_of(text)
    seen = run(text, bits[:], failing[:])
    assert all(any({use, bound} <= {*group} for group in groups) for use, bound in seen), text


def run(text, bits, failing):
    """Who saw which binding; `fail` fails where it is told to."""
    seen = []

    def flip():
        return bool(bits and bits.pop())

    def fail():
        if failing and failing.pop():
            raise ValueError

    def drain(waiting):
        while waiting:
            list(waiting.pop())

    names = {"flip": flip, "fail": fail, "drain": drain, "waiting": []}
    names["use"] = lambda line, value: seen.append((line, value))
    names["quiet"] = lambda: contextlib.suppress(ValueError)
    exec(compile(text, "program.py", "exec", dont_inherit=True), names)
    with contextlib.suppress(ValueError, NameError):
        names["f"]()
    return seen


REFUSED = {
    "set_beside": [
        """
        def f(wild, more):
            found = []
            for i in range(2):
                for x in wild:
                    if x not in found:
                        found.append(x)
                found = look(more)
        """,
        """
        def f(wild, more):
            try:
                found = look(more)
                print(found)
                found = []
            except ValueError:
                pass
            for x in wild:
                if x not in found:
                    found.append(x)
            return found
        """,
        """
        def f(wild):
            *rest, found, last = 1, [], *wild
            for x in wild:
                if x not in found:
                    found.append(x)
            return found
        """,
        """
        def f(wild, more):
            found, found = [], [more]
            for x in wild:
                if x not in found:
                    found.append(x)
            return found
        """,
    ],
    "mirror_set": [
        """
        def f(others, more):
            seen = []
            while look(others):
                for a, b in others:
                    if (a, b) not in seen:
                        seen.append((a, b))
                seen = look(more)
        """,
    ],
    "inner_set": [
        """
        def f(things, flow, more):
            known = more
            if things:
                known = (x for x in flow)
            return [x for x in things if x in list(known)]
        """,
    ],
    "asked_set": [
        """
        def f(things, more):
            other = [1]
            known = other or []
            for x in things:
                if x in known:
                    print(x)
                other.append(x)
        """,
        """
        def f(things, more, n):
            if n:
                known = look(more)
            elif n is None:
                print(n)
            else:
                known = [n]
            return [x for x in things if x in known]
        """,
        """
        def f(things, more):
            known = look(more)
            for x in things:
                if x in known:
                    known = look(x)
        """,
        """
        def f(things, known):
            other = [1]
            known = other
            known = known or []
            for x in things:
                if x in known:
                    print(x)
                other.append(x)
        """,
        """
        def f(things, known):
            other = [1]
            known = known or other
            for x in things:
                if x in known:
                    print(x)
                other.append(x)
        """,
        """
        def f(things, more):
            known = list(more)
            return [x for x in things if x in known]
        """,
        """
        def f(things, known, more):
            for x in things:
                if x in known:
                    print(x)
                more += [x]
        """,
        """
        def f(things, known, more):
            for x in things:
                if x in known:
                    print(x)
                more.all += x
        """,
    ],
    "deque": [
        """
        def f(things, more):
            queue = list(things)
            while queue:
                print(queue.pop(0))
                if not queue:
                    queue = look(more)
        """,
        """
        def f(things, more):
            queue = list(things)
            print(queue[1:])
            queue = more
            while queue:
                print(queue.pop(0))
        """,
    ],
    "join": [
        """
        def f(texts, things):
            out = ""
            print(out)
            out = things
            for each in texts:
                out += each
            out = "."
            return out
        """,
        """
        def f(texts, n):
            out = ""
            for each in texts:
                out += each
                if n:
                    out = n
                    break
            return out
        """,
        """
        def f(texts, things, n):
            out = ""
            if n:
                out = things
            for each in texts:
                out += each
            return out
        """,
    ],
}


@pytest.mark.parametrize(
    ("name", "at"), [(name, at) for name, some in REFUSED.items() for at in range(len(some))]
)
def test_what_may_be_something_else_stays_as_it_is(name, at):
    text = textwrap.dedent(REFUSED[name][at])
    assert transform(text, name).text == text


def test_the_other_lives_of_a_name_stay_as_they_are():
    asked = transform(
        textwrap.dedent("""
        def f(things, more):
            known = look(more)
            for x in things:
                if x not in known:
                    known = (x, 2)
                    print(2 in known, x in known)
                    break
        """),
        "asked_set",
    )
    assert "if x not in known_set:" in asked.text
    assert "print(2 in known, x in known)" in asked.text
    queued = transform(
        textwrap.dedent("""
        def f(things, more):
            queue = list(more)
            queue.append(len(queue))
            queue = list(things)
            while queue:
                print(queue.pop(0))
        """),
        "deque",
    )
    assert "queue = list(more)" in queued.text
    assert "queue = deque(things)" in queued.text

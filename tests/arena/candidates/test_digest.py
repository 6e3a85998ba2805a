"""Equivalent candidates have equal digests, all others have different ones."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from fairtrial.arena import FileState
from fairtrial.arena.candidates import digest as digest_module
from fairtrial.arena.candidates.digest import normalized_digest, write_tokens
from fairtrial.arena.candidates.scopes import find_locals

BASE = FileState(b"base = 1\n", False)


def digest(source, path="a.py", before=BASE):
    content = source if isinstance(source, bytes) else source.encode()
    return normalized_digest({path: FileState(content, False)}, {path: before}.get)


def function(body):
    return "def f(x, y):\n" + "".join(f"    {line}\n" for line in body.splitlines())


SAME = {
    "formatting": ("x = [1,2,\n  3]\n", "x = [1, 2, 3]\n"),
    "comments": ("x = 1\n", "# a\nx = 1  # type: int  # noqa\n"),
    "quotes": ("x = 'a' \"b\"\n", 'x = """ab"""\n'),
    "prefixes": ("x = u'a' + r'b'\n", "x = 'a' + 'b'\n"),
    "numbers": ("x = 0x10 + 1_000 + 1.50\n", "x = 16 + 1000 + 1.5\n"),
    "a coding cookie": ("x = 'ä'\n".encode(), "# coding: latin-1\nx = 'ä'\n".encode("latin-1")),
    "a byte order mark": (b"x = 1\n", b"\xef\xbb\xbfx = 1\n"),
    "line ends": (b"x = 1\ny = 2\n", b"x = 1\r\ny = 2\r\n"),
    "docstrings": (
        '"""D."""\nclass C:\n    """D."""\n    def f(self):\n        """E."""\n        return 1\n',
        "class C:\n    def f(self):\n        return 1\n",
    ),
    "only a docstring": ('def f():\n    """Doc."""\n', "def f():\n    pass\n"),
    "elif": ("if a:\n    b\nelse:\n    if c:\n        d\n", "if a:\n    b\nelif c:\n    d\n"),
    "locals": (function("t = x\nreturn t + y"), function("u = x\nreturn u + y")),
    "loops": (function("for i in x:\n    y += i"), function("for j in x:\n    y += j")),
    "unpacking": (
        function("a, (b, *c) = x\nreturn a, b, c"),
        function("p, (q, *r) = x\nreturn p, q, r"),
    ),
    "with": (function("with x as f: return f"), function("with x as g: return g")),
    "except": (
        function("try: x()\nexcept KeyError as e: raise F from e"),
        function("try: x()\nexcept KeyError as error: raise F from error"),
    ),
    "walrus": (function("if (n := x): return n"), function("if (m := x): return m")),
    "walrus in a comprehension": (
        function("z = [(last := i) for i in x]\nreturn last, z"),
        function("w = [(end := j) for j in x]\nreturn end, w"),
    ),
    "comprehensions": (
        "z = [i * j for i in a for j in i if j]\n",
        "z = [p * q for p in a for q in p if q]\n",
    ),
    "comprehensions in classes": (
        "class C:\n    z = {i: 1 for i in a}\n",
        "class C:\n    z = {k: 1 for k in a}\n",
    ),
    "lambda's own": ("z = lambda: (t := 1) + t\n", "z = lambda: (u := 1) + u\n"),
    "closures": (
        function("n = 0\ndef g():\n    nonlocal n\n    n += 1\n    return n\nreturn g"),
        function("k = 0\ndef g():\n    nonlocal k\n    k += 1\n    return k\nreturn g"),
    ),
    "inner functions' own": (
        function("t = 1\ndef g(a):\n    t = a\n    return t\nreturn g, t"),
        function("u = 1\ndef g(a):\n    v = a\n    return v\nreturn g, u"),
    ),
    "match": (
        function("match x:\n    case [a, *b]: a(b)\n    case {'k': c, **d}: c(d)\n    case e: e()"),
        function("match x:\n    case [p, *q]: p(q)\n    case {'k': r, **s}: r(s)\n    case t: t()"),
    ),
    "imports under a name": (
        function("import math as o\nreturn o.x"),
        function("import math as p\nreturn p.x"),
    ),
    "methods": (
        "class C:\n    def f(self):\n        t = self.t\n        return t\n",
        "class C:\n    def f(self):\n        u = self.t\n        return u\n",
    ),
    "a local like a global": (
        "t = 1\n" + function("t = x\nreturn t"),
        "t = 1\n" + function("u = x\nreturn u"),
    ),
    "methods that read a function's variable": (
        function("t = x\nclass C:\n    t = 2\n    def m(self): return t\nreturn C, t"),
        function("u = x\nclass C:\n    t = 2\n    def m(self): return u\nreturn C, u"),
    ),
    "what a comprehension goes over": (
        function("t = x\nreturn [t for t in t]"),
        function("u = x\nreturn [v for v in u]"),
    ),
    "del": (function("t = x\ndel t"), function("u = x\ndel u")),
}
READS_LINE = "import sys\ndef f():\n    return sys._getframe().f_lineno\n"
READS_ERROR = """def f():
    try:
        return {0}
        {0} = 1
    except Exception as error:
        return str(error)
"""
DIFFERENT = {
    "names beside eval": (
        "def g():\n    eval('1')\n" + function("t = x\nreturn t"),
        "def g():\n    eval('1')\n" + function("u = x\nreturn u"),
    ),
    "broken code, blanks at line ends": ("def (:  \n\n", "def (:\n"),
    "an empty line, if lines are counted": (READS_LINE, "\n" + READS_LINE),
    "a comment, if the file is read": (
        "text = open(__file__).read()\n",
        "text = open(__file__).read()  # fast\n",
    ),
    "a local name, if an error has it": (READS_ERROR.format("a"), READS_ERROR.format("b")),
    "a local name, if an error with it is handed over": (
        *(
            "class C:\n    def __exit__(self, kind, error, trace):\n"
            f"        {name} = error\n        return {name}\n"
            for name in ("a", "b")
        ),
    ),
    "an empty line, if a pattern reads it": (
        "def f(x):\n    match x:\n        case object(tb_lineno=n): return n\n",
        "\ndef f(x):\n    match x:\n        case object(tb_lineno=n): return n\n",
    ),
    "a line, read from a template": (
        "def f(): pass\nx = '{0.__code__.co_firstlineno}'.format(f)\n",
        "\ndef f(): pass\nx = '{0.__code__.co_firstlineno}'.format(f)\n",
    ),
    "a line, by a module that may tell": (
        "import logging\nlogging.warning('x')\n",
        "import logging\n\nlogging.warning('x')\n",
    ),
    "operators": (function("return x + y"), function("return x - y")),
    "constants": ("x = 1\n", "x = 2\n"),
    "types of constants": ("x = 1\n", "x = 1.0\n"),
    "truth": ("x = 1\n", "x = True\n"),
    "bytes": ("x = 'a'\n", "x = b'a'\n"),
    "text like a name": ("x = '$0'\n", "x = '$1'\n"),
    "roles of two locals": (
        function("a = x\nb = y\nreturn a - b"),
        function("a = x\nb = y\nreturn b - a"),
    ),
    "roles in a comprehension": ("z = [a - b for a, b in c]\n", "z = [b - a for a, b in c]\n"),
    "one local instead of two": (
        function("a = x\nb = y\nreturn a"),
        function("a = x\na = y\nreturn a"),
    ),
    "order": (function("a()\nb()"), function("b()\na()")),
    "called functions": (function("return g(x)"), function("return h(x)")),
    "keywords": (function("return g(k=x)"), function("return g(l=x)")),
    "parameters": ("def f(a):\n    return a\n", "def f(b):\n    return b\n"),
    "lambda's parameters": ("z = lambda a: a\n", "z = lambda b: b\n"),
    "attributes": (function("return x.a"), function("return x.b")),
    "globals": ("a = 1\n", "b = 1\n"),
    "declared globals": (function("global g\ng = x"), function("global h\nh = x")),
    "class bodies": ("class C:\n    a = 1\n", "class C:\n    b = 1\n"),
    "names of inner functions": (
        function("def g(): pass\nreturn g"),
        function("def h(): pass\nreturn h"),
    ),
    "imports": (function("import a\nreturn a"), function("import b\nreturn b")),
    "a local or a global": (function("t = x\nreturn t"), function("t = x\nreturn u")),
    "shadowed or not": (
        function("t = 1\ndef g():\n    t = 2\n    return t\nreturn g() + t"),
        function("t = 1\ndef g():\n    nonlocal t\n    t = 2\n    return t\nreturn g() + t"),
    ),
    "locals()": (function("t = x\nreturn locals()"), function("u = x\nreturn locals()")),
    "eval further in": (
        function("t = x\nreturn [eval('t') for _ in y]"),
        function("u = x\nreturn [eval('t') for _ in y]"),
    ),
    "frames": (
        function("t = x\nreturn sys._getframe()"),
        function("u = x\nreturn sys._getframe()"),
    ),
    "queries that look for locals": (
        function("t = x\nreturn y.query('a > @t')"),
        function("u = x\nreturn y.query('a > @t')"),
    ),
    "f-strings that print names": (
        function("t = x\nreturn f'{t=}'"),
        function("u = x\nreturn f'{u=}'"),
    ),
    "docstrings that are used": ('"""A."""\nprint(__doc__)\n', '"""B."""\nprint(__doc__)\n'),
    "docstrings that the program reads": (
        'import inspect\ndef f():\n    """A."""\nprint(inspect.getdoc(f))\n',
        'import inspect\ndef f():\n    """B."""\nprint(inspect.getdoc(f))\n',
    ),
    "docstrings with examples": ('def f():\n    """>>> 1\n    1"""\n', "def f():\n    pass\n"),
    "docstrings that decorators read": (
        '@click.command()\ndef f():\n    """A."""\n',
        '@click.command()\ndef f():\n    """B."""\n',
    ),
    "docstrings that are grammar": (
        'def p_sum(p):\n    "sum : sum PLUS item"\n    p[0] = p[1]\n',
        'def p_sum(p):\n    "sum : sum MINUS item"\n    p[0] = p[1]\n',
    ),
    "source that is read": (
        "from inspect import getsource\nprint(getsource(f))\n# one\n",
        "from inspect import getsource\nprint(getsource(f))\n# two\n",
    ),
    "docstrings that are not docstrings": ("x = 1\n'a'\n", "x = 1\n'b'\n"),
    "future imports": ("x = 1\n", "from __future__ import annotations\nx = 1\n"),
    "mangled names": (
        "class C:\n    def f(self):\n        __t = 1\n        return __t\n",
        "class C:\n    def f(self):\n        __u = 1\n        return __u\n",
    ),
    "annotations that are kept": (
        function("T = x\ndef g(a: T): pass\nreturn g"),
        function("U = x\ndef g(a: U): pass\nreturn g"),
    ),
    "class bodies that read locals": (
        function("t = x\nclass C(metaclass=M):\n    a = t\nreturn C"),
        function("u = x\nclass C(metaclass=M):\n    a = u\nreturn C"),
    ),
    "a class's own name or the function's": (
        function("t = x\nclass C:\n    t = 2\n    a = t\nreturn C, t"),
        function("u = x\nclass C:\n    t = 2\n    a = u\nreturn C, u"),
    ),
    "spread or not": ("x = {**a, 1: 2}\n", "x = {None: a, 1: 2}\n"),
    "async": ("async def f():\n    pass\n", "def f():\n    pass\n"),
    "the line that says what runs it": ("#!/usr/bin/python\nx = 1\n", "#!/bin/other\nx = 1\n"),
    "nothing and None": (function("return"), function("return None")),
    "broken code": ("def (:\n", "def (;\n"),
}


@pytest.mark.parametrize("what", SAME)
def test_equivalent_sources_have_equal_digests(what):
    one, other = SAME[what]
    assert digest(one) == digest(other) != ""


@pytest.mark.parametrize("what", DIFFERENT)
def test_different_sources_have_different_digests(what):
    one, other = DIFFERENT[what]
    assert digest(one) != digest(other)


def test_sources_equivalent_to_the_base_have_an_empty_digest():
    before = FileState(b"def f():\n    t = 1\n    return t\n", False)
    other = "# new\ndef f():\n    '''Doc.'''\n    u = 1\n    return u\n"
    assert digest(other, before=before) == ""
    assert normalized_digest({}, {}.get) == ""
    assert normalized_digest({"gone": None}, {}.get) == ""


def test_only_files_that_differ_count():
    before = {"a.py": BASE, "b.py": BASE}
    more = {"a.py": FileState(b"x = 2\n", False), "b.py": FileState(b"base=1 # as ever\n", False)}
    assert normalized_digest(more, before.get) == digest("x = 2\n")


def test_paths_modes_kinds_and_removals_count():
    state, other = FileState(b"x = 1\n", False), FileState(b"x = 1\n", True)
    link = FileState(b"x = 1\n", False, is_link=True)
    before = {"a.py": BASE, "b.py": BASE}
    digests = [
        normalized_digest(files, before.get)
        for files in (
            *({"a.py": state}, {"a.py": other}, {"a.py": link}, {"a.py": None}, {"b.py": state}),
            *({"a.py": state, "b.py": None}, {"a.txt": state}, {"c.py": state}, {"a.pyi": state}),
            *({"a.py": None, "b.py": state}, {"a.py": None, "c.py": BASE}),
        )
    ]
    assert len(set(digests)) == len(digests)
    assert "" not in digests
    # What is left open is what the base has.
    kept = normalized_digest({"a.py": FileState(b"x = 1\n")}, before.get)
    assert kept == digests[0]


def test_other_files_count_by_their_bytes():
    assert digest("x = 1\n", "a.txt") != digest("x = 1 \n", "a.txt")
    assert digest(b"\0\xff", "a.bin") != digest(b"\0\xfe", "a.bin")


def test_the_order_of_files_does_not_matter():
    states = {f"{letter}.py": FileState(f"{letter} = 1".encode()) for letter in "abcdef"}
    backwards = dict(reversed(states.items()))
    assert normalized_digest(states, {}.get) == normalized_digest(backwards, {}.get)


def test_hostile_sources_are_taken_as_text():
    sources = [
        b"x = " + b"(" * 5000 + b")" * 5000,
        b"x = " + b"-" * 50_000 + b"1",
        b"x = 1" + b" + 1" * 20_000,
        b"x = 0x" + b"f" * 20_000,
        b"x = " + b"9" * 10_000,
        b"x\0 = 1",
        b"# coding: nonsense\n",
        b"# coding: latin-1\nx = '\xff'\n",
        b"\xff\xfe",
        b"x = '\\d'\n",
        b"if x:\n" + b"".join(b" " * n + b"if x:\n" for n in range(1, 200)) + b" " * 200 + b"y",
        b"x = 1\n" * 200_000,
        b"x = '\\ud800'\n",
    ]
    digests = [digest(source) for source in sources]
    assert len(set(digests)) == len(sources)


def test_a_long_sum_is_read_without_recursion():
    """As deep as the parser allows: no stack of ours is in the way."""
    long, same = (f"def f():\n    {t} = 1{' + 1' * 900}\n    return {t}\n" for t in ("t", "u"))
    assert digest(long) == digest(same)


# Programs made at random, and changed at random in ways that matter and ways that don't.
NAMES = ("aa", "bb", "cc", "dd")
EXPRESSION = st.recursive(
    st.sampled_from((*NAMES, "x", "y", "g", "1", "'s'", "(lambda: aa)()")),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"g({t[0]}, key={t[1]})"),
        st.tuples(st.sampled_from(NAMES), inner, inner).map(
            lambda t: f"[{t[1]} for {t[0]} in {t[2]}]"
        ),
        inner.map(lambda e: f"f'{{{e}}}'" if "'" not in e and '"' not in e else e),
    ),
    max_leaves=5,
)
STATEMENT = st.one_of(
    st.tuples(st.sampled_from(NAMES), EXPRESSION).map(lambda t: f"{t[0]} = {t[1]}"),
    st.tuples(st.sampled_from(NAMES), EXPRESSION).map(lambda t: f"{t[0]} += {t[1]}"),
    EXPRESSION.map(lambda e: f"g({e})"),
    st.tuples(st.sampled_from(NAMES), EXPRESSION).map(
        lambda t: f"for {t[0]} in {t[1]}:\n    g({t[0]})"
    ),
    st.sampled_from(NAMES).map(lambda n: f"def h(x):\n    {n} = x\n    return {n}"),
    st.sampled_from(NAMES).map(lambda n: f"def k():\n    return {n}"),
    st.sampled_from(NAMES).map(lambda n: f"try:\n    g()\nexcept KeyError as {n}:\n    g({n})"),
)
BODY = st.lists(STATEMENT, min_size=1, max_size=5).map("\n".join)


@settings(max_examples=75, deadline=None)
@given(BODY, st.permutations(("p1", "q2", "r3", "s4")), st.randoms(use_true_random=False))
def test_renaming_reformatting_and_commenting_change_nothing(body, names, chance):
    # Every name is bound in the function, so that renaming all of them is a renaming of locals.
    source = function("aa = bb = cc = dd = x\n" + body)
    renamed = Renaming(dict(zip(NAMES, names, strict=True))).visit(ast.parse(source))
    text = ast.unparse(ast.fix_missing_locations(renamed))
    commented = "\n".join(
        line + chance.choice(("", "  # why", "   ")) for line in text.splitlines()
    )
    assert digest(commented + "\n") == digest(source)


class Renaming(ast.NodeTransformer):
    def __init__(self, names):
        self.names = names

    def visit_Name(self, node):
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_ExceptHandler(self, node):
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)


LIBRARY = ("dataclasses", "functools", "argparse", "difflib", "enum", "asyncio.tasks", "heapq")


@pytest.mark.parametrize("name", LIBRARY)
def test_real_modules_with_all_locals_renamed(name):
    """Their tokens stay, and so do the globals, attributes and parameters of their code."""
    source = Path(importlib.util.find_spec(name).origin).read_bytes()
    tree = ast.parse(source)
    variables = find_locals(tree)
    assert len(set(variables.values())) > 5
    for node in ast.walk(tree):
        for field in ("id", "name", "rest", "asname"):
            if (id(node), field, 0) in variables:
                setattr(node, field, "renamed_{}_{}".format(*variables[id(node), field, 0]))
        if isinstance(node, ast.Nonlocal):
            places = [variables.get((id(node), "names", place)) for place in range(len(node.names))]
            node.names = [
                "renamed_{}_{}".format(*place) if place else given
                for place, given in zip(places, node.names, strict=True)
            ]
    renamed = ast.unparse(ast.fix_missing_locations(tree))
    assert list(write_tokens(ast.parse(renamed))) == list(write_tokens(ast.parse(source)))
    assert interface(compile(renamed, name, "exec")) == interface(compile(source, name, "exec"))


def interface(code):
    """What a code object has to do with the world: globals, attributes, parameters, inner code."""
    count = code.co_argcount + code.co_kwonlyargcount
    inner = [interface(const) for const in code.co_consts if hasattr(const, "co_code")]
    return code.co_name, code.co_names, code.co_varnames[:count], inner


@settings(max_examples=75, deadline=None)
@given(BODY, st.randoms(use_true_random=False))
def test_a_change_that_matters_changes_the_digest(body, chance):
    source = function("aa = bb = cc = dd = x\n" + body + "\nreturn aa + 1")
    tree = ast.parse(source)
    alter(tree, chance)
    changed = ast.unparse(ast.fix_missing_locations(tree))
    assert digest(changed) != digest(source)


def alter(tree, chance):
    """Return a program with one change of its behavior."""
    deeds = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            deeds.append(lambda node=node: setattr(node, "op", ast.Pow()))
        elif isinstance(node, ast.Constant):
            deeds.append(lambda node=node: setattr(node, "value", 77))
        elif isinstance(node, ast.keyword):
            deeds.append(lambda node=node: setattr(node, "arg", "other"))
        elif isinstance(node, ast.Name) and node.id == "g":
            deeds.append(lambda node=node: setattr(node, "id", "other"))
        elif isinstance(node, ast.FunctionDef):
            deeds.append(lambda node=node: node.body.insert(0, ast.parse("new()").body[0]))
    chance.choice(deeds)()


@settings(max_examples=50, deadline=None)
@given(BODY, st.sampled_from(NAMES), st.sampled_from(NAMES), st.randoms(use_true_random=False))
def test_another_partition_of_names_is_another_program(body, one, other, chance):
    """One occurrence of a local replaced by another local: never the same digest."""
    source = function("aa = 1\nbb = 2\ncc = 3\ndd = 4\n" + body + f"\nreturn g({one}, {other})")
    tree = ast.parse(source)
    returned = tree.body[0].body[-1].value.args
    place = chance.randrange(2)
    current = returned[place].id
    returned[place].id = chance.choice([name for name in NAMES if name != current])
    assert digest(ast.unparse(tree)) != digest(source)


def test_the_scheme_is_part_of_the_digest(monkeypatch):
    before = digest("x = 1\n")
    monkeypatch.setattr(digest_module, "SCHEME", b"another")
    assert digest("x = 1\n") != before


def test_digests_never_change():
    """What people have written down stays true; a change needs another scheme."""
    source = "def f(a):\n    t = a + 1\n    return [t for _ in a]\n"
    assert digest(source) == "be653c6fb0eb796c491d7485ddf9a1c6"


def find_pythons():
    """Other Pythons that fairtrial runs on, if this machine has any."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for minor in range(11, 16):
        if minor != sys.version_info.minor:
            places = [
                *root.glob(f"versions/3.{minor}.*/bin/python"),
                shutil.which(f"python3.{minor}"),
            ]
            yield minor, next(filter(None, places), None)


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from fairtrial.arena.candidates.digest import normalized_digest
from fairtrial.arena.model.candidates import FileState
for text in sys.stdin.read().split("\\0"):
    print(normalized_digest({"a.py": FileState(text.encode(), False)}, {}.get))
"""


@pytest.mark.parametrize(("minor", "python"), list(find_pythons()))
def test_other_versions_of_python_give_the_same_digests(minor, python):
    texts = [text for pair in (*SAME.values(), *DIFFERENT.values()) for text in pair]
    texts = [text for text in texts if isinstance(text, str)]
    source = Path(digest_module.__file__).parents[2]
    done = python and subprocess.run(
        [str(python), "-B", "-c", PROGRAM, str(source)],
        input="\0".join(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    if not done or done.returncode:
        pytest.skip(f"there is no Python 3.{minor} here that works")
    ours = [normalized_digest({"a.py": FileState(text.encode(), False)}, {}.get) for text in texts]
    assert done.stdout.split() == ours


def test_a_file_that_reads_frames_makes_all_files_of_a_candidate_count_by_bytes():
    helper = FileState(READS_LINE.encode(), False)
    twins = [
        {"main.py": FileState(source, False), "helper.py": helper}
        for source in (b"from helper import f\nx = f()\n", b"from helper import f\n\nx = f()\n")
    ]
    one, other = (normalized_digest(files, {}.get) for files in twins)
    assert one != other

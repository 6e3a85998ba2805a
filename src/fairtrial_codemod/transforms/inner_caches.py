"""Recursive functions whose results are remembered only while one call from outside runs.

Nested functions are remembered as they are. Of others, what each call hands on unchanged, be it a
list or the object itself, stays in an outer function, so that only the rest must be hashable::

    def count(coins, left, first):
        known = {}
        def step(left, first): ...
        return step(left, first)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from itertools import pairwise

from fairtrial_codemod.transforms.analysis.hashability import is_hashable
from fairtrial_codemod.transforms.analysis.purity import (
    defined_names,
    gives_values,
    is_pure,
    reads_elsewhere,
    takes_values,
)
from fairtrial_codemod.transforms.analysis.recursions import (
    Recursion,
    is_own_call,
    parameters,
    read_recursion,
)
from fairtrial_codemod.transforms.analysis.scopes import scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source
from fairtrial_codemod.transforms.analysis.stability import is_stable
from fairtrial_codemod.transforms.analysis.uses import Scope
from fairtrial_codemod.transforms.caches import remember, say_key

Cut = tuple[tuple[int, int], tuple[int, int], bytes]
"""From where (line, byte) to where, and what stands there instead."""


def find_inner_caches(source: Source) -> Iterator[Change]:
    """Nested functions, methods, and functions that hand on some parameters unchanged."""
    if not source.is_builtin("type"):
        return
    defined = defined_names(source)
    for scope in scopes_of(source):
        recursion = read_recursion(scope)
        if recursion is None or not recursion.varying or not is_pure(recursion, defined):
            continue
        if not gives_values(recursion) or not takes_values(recursion):
            continue
        is_lifted = recursion.kept or recursion.receiver
        change = _lift(recursion) if is_lifted else _remember(recursion)
        if change:
            yield change


def _remember(recursion: Recursion) -> Change | None:
    """A nested function whose surroundings stay as they are while it can be called."""
    function, source = recursion.function, recursion.scope.source
    outer = source.function_of(function)
    if not isinstance(outer, ast.FunctionDef):
        return None
    around = Scope(source, "", outer)
    calls = _calls_outside(around, function)
    if not calls or not all(is_hashable(around, each) for call in calls for each in call.args):
        return None
    is_brief = len(calls) == 1 and not around.loops(calls[0])
    is_left_meanwhile = any(
        isinstance(node, ast.Yield | ast.YieldFrom | ast.Await) for node in source.walk(outer)
    )
    if is_left_meanwhile and not is_brief:
        return None
    if not all(is_stable(source, function, name, is_brief) for name in reads_elsewhere(recursion)):
        return None
    what = f"what {function.name} gives is remembered"
    edits = remember(source, function, source.fresh(f"{function.name}_known"))
    return Change(what, function.lineno, recursion.scope.name, tuple(edits))


def _calls_outside(around: Scope, function: ast.FunctionDef) -> list[ast.Call]:
    """Where an outer function calls a nested one; nothing, if it does anything else with it."""
    source = around.source
    inside = set(source.walk(function))
    calls: list[ast.Call] = []
    for mention in around.mentions(function.name):
        if mention in inside:
            continue
        call = source.parents[mention]
        is_plain = isinstance(call, ast.Call) and call.func is mention and not call.keywords
        is_here = source.function_of(mention) is around.function
        if not is_plain or not is_here or mention.lineno < function.lineno:
            return []
        assert isinstance(call, ast.Call)
        calls.append(call)
    return calls


def _lift(recursion: Recursion) -> Change | None:
    """The body becomes an inner function of what differs from call to call."""
    function, source = recursion.function, recursion.scope.source
    has_docstring = ast.get_docstring(function, clean=False) is not None
    body = function.body[1:] if has_docstring else function.body
    step = source.fresh("step")
    text = _moved(recursion, body, step)
    if text is None:
        return None
    given = ", ".join(recursion.varying)
    known, asked = source.fresh("known"), source.fresh("asked")
    unit = text[: len(text) - len(text.lstrip())].rpartition("\n")[2]
    begun = f"{unit}{asked} = {say_key(recursion.varying)}\n"
    begun += f"{unit}if {asked} in {known}:\n{unit}{unit}return {known}[{asked}]\n"
    code = f"{known} = {{}}\ndef {step}({given}):\n{begun}{text}"
    if not _means(code, recursion, body, step):
        return None
    first, *rest = body
    edits: list[Edit] = [("replace", first, code), ("after", first, f"return {step}({given})")]
    edits += [("replace", each, "") for each in rest]
    what = f"what {function.name} gives is remembered while one call of it runs"
    return Change(what, function.lineno, recursion.scope.name, tuple(edits))


def _moved(recursion: Recursion, body: list[ast.stmt], step: str) -> str | None:
    """The text of a body, with its own calls changed, indented as that of a function."""
    source, function = recursion.scope.source, recursion.function
    start, end = body[0].lineno, body[-1].end_lineno or 0
    lines = [line.encode() for line in source.lines[start - 1 : end]]
    margin = lines[0][: body[0].col_offset]
    outer = source.lines[function.lineno - 1].encode()[: function.col_offset]
    unit = margin.removeprefix(outer)
    if margin.strip() or outer.strip() or not unit or _has_long_texts(body):
        return None
    for (line, place), (last, until), new in sorted(_cuts(recursion, step), reverse=True):
        if line != last or not start <= line <= end:
            return None  # in f-strings, places may be wrong before Python 3.12
        old = lines[line - start]
        lines[line - start] = old[:place] + new + old[until:]
    moved = [
        unit + (line.removeprefix(margin) if line.startswith(margin) else line.lstrip(b" \t"))
        if line.strip()
        else line
        for line in lines
    ]
    return b"".join(moved).decode().replace("\r\n", "\n").rstrip() + "\n"


def _has_long_texts(body: list[ast.stmt]) -> bool:
    """Whether a text goes over several lines: moving it would change it."""
    return any(
        isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno
        for statement in body
        for node in ast.walk(statement)
    )


def _cuts(recursion: Recursion, step: str) -> Iterator[Cut]:
    """What is changed in the text: own calls have another name and fewer arguments, and results
    are kept.
    """
    fresh = recursion.scope.source.fresh
    for node in ast.walk(recursion.function):
        if isinstance(node, ast.Return) and node.value is not None:
            begin, end = _start(node.value), _end(node.value)
            yield begin, begin, f"{fresh('known')}.setdefault({fresh('asked')}, (".encode()
            yield end, end, b"))"
    for call in recursion.calls:
        yield _start(call.func), _end(call.func), step.encode()
        given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        stays = [not _is_kept(recursion, call, each) for each in given]
        left = [each for each, is_left in zip(given, stays, strict=True) if is_left]
        if not left:
            continue
        if not stays[0]:
            yield _start(given[0]), _start(left[0]), b""
        for one, other in pairwise(left):
            if given.index(other) - given.index(one) > 1:
                yield _end(one), _start(other), b", "
        if not stays[-1]:
            yield _end(left[-1]), _end(given[-1]), b""


def _is_kept(recursion: Recursion, call: ast.Call, given: ast.expr | ast.keyword) -> bool:
    if isinstance(given, ast.keyword):
        return given.arg in recursion.kept
    names = parameters(recursion.function)[1 if recursion.receiver else 0 :]
    return names[call.args.index(given)] in recursion.kept


def _start(node: ast.expr | ast.keyword) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.keyword) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _means(code: str, recursion: Recursion, body: list[ast.stmt], step: str) -> bool:
    """Whether the text of the inner function is the old body but for its own calls."""
    try:
        _, made = ast.parse(code).body
    except (SyntaxError, ValueError):
        return False
    assert isinstance(made, ast.FunctionDef)
    name, receiver = recursion.function.name, recursion.receiver
    placed = parameters(recursion.function)[1 if receiver else 0 :]

    class Rename(ast.NodeTransformer):
        """Calls of the function become calls of the inner one."""

        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            if not is_own_call(node, name, receiver):
                return node
            args = [
                each
                for place, each in zip(placed, node.args, strict=False)
                if place not in recursion.kept
            ]
            keywords = [each for each in node.keywords if each.arg not in recursion.kept]
            return ast.Call(ast.Name(step, ast.Load()), args, keywords)

    class Unwrap(ast.NodeTransformer):
        """What is returned, without being kept."""

        def visit_Return(self, node: ast.Return) -> ast.AST:
            if isinstance(node.value, ast.Call) and len(node.value.args) == 2:
                node.value = node.value.args[1]
            return node

    wanted = [Rename().visit(copy.deepcopy(each)) for each in body]
    found = [Unwrap().visit(each) for each in made.body[2:]]
    return [ast.dump(each) for each in found] == [ast.dump(each) for each in wanted]

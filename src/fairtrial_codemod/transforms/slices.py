"""Parts of lists and texts that are gone through or copied for what a slice or an offset does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.kinds import READING
from fairtrial_codemod.transforms.analysis.loop_ends import (
    has_comment,
    is_forgotten,
    is_pure,
    mentions,
)
from fairtrial_codemod.transforms.analysis.matching import Found, match, same
from fairtrial_codemod.transforms.analysis.scopes import find_each
from fairtrial_codemod.transforms.analysis.source import Change, Source
from fairtrial_codemod.transforms.analysis.uses import Scope, Use, is_fresh_list

_FOR = "for __j in range(__a, __b, __c):\n __x[__j] = __v"
_WHILE = {
    "while __j < __b:\n __x[__j] = __v\n __j += __c": "",
    "while __j <= __b:\n __x[__j] = __v\n __j += __c": " + 1",
}


def find_slice_fills(source: Source) -> Iterator[Change]:
    """``for j in range(a, b, step): flags[j] = False``, as in the sieve of Eratosthenes."""
    if not all(map(source.is_builtin, ("range", "len"))):
        return
    yield from find_each(source, ast.stmt, _fill)


def _fill(scope: Scope, loop: ast.stmt) -> Change | None:
    if not isinstance(loop, ast.For | ast.While) or loop.orelse or has_comment(scope.source, loop):
        return None
    found, more = _parts(scope, loop)
    if found is None:
        return None
    first = found.get("__first", found["__a"])
    items, step, value = found["__x"], found["__c"], found["__v"]
    numbers = [found[at] for at in ("__a", "__b", "__c")]
    if not isinstance(items, ast.Name) or not isinstance(value, ast.Constant):
        return None
    if not is_pure(scope.source, *numbers) or mentions(items.id, *numbers[::2]):
        return None
    kind = _kind(scope, items.id, value)
    start, end, step_said = map(ast.unparse, numbers)
    end += more
    if kind is None or not _ends_with(scope, items.id, end) or not _is_natural(scope, step):
        return None
    if not _is_natural(scope, first):
        return None
    target = f"{items.id}[{start} : {end} : {step_said}]"
    code = f"{target} = {kind} * len(range({start}, {end}, {step_said}))"
    what = f"a part of {items.id} is set at once"
    return Change(what, loop.lineno, scope.name, (("replace", loop, code),))


def _parts(scope: Scope, loop: ast.For | ast.While) -> tuple[Found | None, str]:
    """What is set from where to where, and what is to be added to the end."""
    if isinstance(loop, ast.For):
        found = match(_FOR, loop)
        if found is None or not is_forgotten(scope, loop):
            return None, ""
        return found, ""
    for form, more in _WHILE.items():
        found = match(form, loop)
        if found is None or not isinstance(found["__j"], ast.Name):
            continue
        at = found["__j"].id
        block = scope.source.block_of(loop)
        before = block[block.index(loop) - 1] if loop in block and block.index(loop) else None
        own = {*ast.walk(loop), *(ast.walk(before) if before else ())}
        is_own = all(each in own for each in scope.mentions(at))
        first = match("__j = __a", before) if isinstance(before, ast.Assign) else None
        if is_own and first and scope.is_local(at) and not mentions(at, found["__b"], found["__c"]):
            # The name keeps its first value, which nobody asks for.
            return {**found, "__a": found["__j"], "__first": first["__a"]}, more
    return None, ""


def _kind(scope: Scope, name: str, value: ast.Constant) -> str | None:
    """One element that is put in: of a list, or of a bytearray, that is made here."""
    if not scope.is_local(name) or scope.parameter(name):
        return None
    values = [scope.assignment(each) for each in scope.bindings(name)]
    if values and all(is_fresh_list(each, scope.source) for each in values):
        return f"[{value.value!r}]"
    is_bytes = all(match("bytearray(__n)", each) for each in values if each is not None)
    if None in values or not values or not is_bytes or not scope.source.is_builtin("bytearray"):
        return None
    number = value.value
    return repr(bytes([number])) if isinstance(number, int) and 0 <= number < 256 else None


def _ends_with(scope: Scope, name: str, end: str) -> bool:
    """Whether a list is always that long: behind its end, an index fails and a slice doesn't."""
    lengths = {_length(scope.assignment(each)) for each in scope.bindings(name)}
    if end != f"len({name})" and lengths != {end}:
        return False
    names = {each.id for each in ast.walk(ast.parse(end)) if isinstance(each, ast.Name)}
    is_same = all(
        len(scope.bindings(each)) + (scope.parameter(each) is not None) == 1
        for each in names - {"len", name}
    )
    return is_same and all(_keeps_length(scope, each) for each in scope.mentions(name))


def _length(value: ast.expr | None) -> str:
    for form in ("[__v] * __n", "bytearray(__n)"):
        found = match(form, value) if value is not None else None
        if found:
            return ast.unparse(found["__n"])
    return ""


def _keeps_length(scope: Scope, mention: ast.Name) -> bool:
    if scope.use(mention) is Use.METHOD:
        return scope.method(mention)[0] in READING
    match scope.source.parents[mention]:
        case ast.Subscript(slice=ast.Slice(step=None), ctx=ast.Store()):
            return False
        case ast.Subscript(ctx=ast.Del()) | ast.AugAssign():
            return False
    return True


def _is_natural(scope: Scope, node: ast.expr) -> bool:
    """Whether it is 0 or more, for all that one sees."""
    match node:
        case ast.Constant(value=int(number)):
            return number >= 0
        case ast.BinOp(left=one, op=ast.Mult(), right=other) if same(one, other):
            return True
        case ast.BinOp(left=one, op=ast.Add() | ast.Mult() | ast.Pow(), right=other):
            return _is_natural(scope, one) and _is_natural(scope, other)
        case ast.Name(id=name):
            bindings = scope.bindings(name)
            is_given = scope.parameter(name) is not None or not scope.is_local(name)
            return bool(bindings) and not is_given and all(_counts_up(scope, x) for x in bindings)
    return False


def _counts_up(scope: Scope, bound: ast.Name) -> bool:
    """Whether a loop lets a name go over a range that begins at 0 or later."""
    match scope.source.parents[bound]:
        case ast.For(target=target, iter=ast.Call(func=ast.Name(id="range"), args=given)):
            is_up = len(given) < 3 or _is_natural(scope, given[2])
            return target is bound and is_up and (len(given) < 2 or _is_natural(scope, given[0]))
    return False


def find_offsets(source: Source) -> Iterator[Change]:
    """``text[i:].startswith(word)`` copies the rest of the text to look at its beginning."""
    yield from find_each(source, ast.Call, _look_at_offset)


def _look_at_offset(scope: Scope, call: ast.Call) -> Change | None:
    source = scope.source
    match call:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript(value=text, slice=ast.Slice(step=None) as part),
                attr="startswith" | "endswith" as method,
            ),
            args=[word],
            keywords=[],
        ):
            pass
        case _:
            return None
    bounds = [each for each in (part.lower, part.upper) if each is not None]
    is_plain = is_pure(source, *bounds) and not isinstance(word, ast.Starred)
    if not is_plain or not bounds or not isinstance(text, ast.Name | ast.Attribute):
        return None
    said = _bounds(source, word, text, part)
    if said is None:
        return None
    code = f"{ast.unparse(text)}.{method}({source.say(word)}, {', '.join(said)})"
    what = f"{method} from an offset, without a copy"
    return Change(what, call.lineno, scope.name, (("replace", call, code),))


def _bounds(source: Source, word: ast.expr, text: ast.expr, part: ast.Slice) -> list[str] | None:
    """From where to where, as arguments; nothing is found behind the end, but in a part of nothing.

    That is, if it is looked for nothing: ``"abc"[5:]`` begins with an empty text.
    """
    start = "0" if part.lower is None else source.say(part.lower)
    if part.upper is not None:
        return [start, source.say(part.upper)] if _is_something(word) else None
    if _is_something(word):
        return [start]
    if not all(map(source.is_builtin, ("min", "len"))):
        return None
    return [f"min({start}, len({ast.unparse(text)}))"]


def _is_something(word: ast.expr) -> bool:
    """Whether it is a text, or several, and none of them empty."""
    match word:
        case ast.Constant(value=str() | bytes() as said):
            return len(said) > 0
        case ast.Tuple(elts=parts):
            return bool(parts) and all(map(_is_something, parts))
    return False

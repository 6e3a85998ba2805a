"""Regular expressions that are looked up again in each call: compiled once, for the module."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source
from fairtrial_codemod.transforms.analysis.uses import Scope
from fairtrial_codemod.transforms.regexes import (
    Asked,
    can_compile,
    find_asked,
    read_constant,
    read_flags,
    read_values,
)

_CACHED = "functools.lru_cache(maxsize=512)"
"""As many as `re` itself keeps: patterns may come from outside without end."""
Values = Mapping[str, tuple[int, ast.expr]]


def find_patterns(source: Source) -> Iterator[Change]:
    """``re.sub("...", ...)`` in functions with constant patterns, or those compiled already."""
    values = read_values(source)
    names: list[str] = []
    for asked in find_asked(source):
        pattern, flags = asked.given["pattern"], asked.given.get("flags")
        call, method = asked.call, asked.method
        number = read_flags(flags, asked.module)
        if number is None:
            continue
        if _is_compiled(source, asked, values):
            if method != "compile" and flags is None and isinstance(pattern, ast.Name):
                edit: Edit = ("replace", call, f"{pattern.id}.{method}({asked.rest})")
                yield Change(f"{pattern.id} is asked itself", call.lineno, asked.scope, (edit,))
            continue
        text = read_constant(pattern, values, source.top_of(call).lineno)
        if text is None or not can_compile(text, number):
            continue
        # Each place defines its own: one may be dropped without the other.
        name = source.fresh("_PATTERN", *names)
        names.append(name)
        given = ", ".join(source.say(each) for each in (pattern, flags) if each is not None)
        edits: tuple[Edit, ...] = (
            ("before", source.top_of(call), f"{name} = {asked.module}.compile({given})"),
            ("replace", call, name if method == "compile" else f"{name}.{method}({asked.rest})"),
        )
        what = f"{name} is compiled once"
        yield Change(what, call.lineno, asked.scope, edits, _imports(asked))


def _imports(asked: Asked) -> tuple[str, ...]:
    return ("re",) if isinstance(asked.call.func, ast.Name) else ()


def _is_compiled(source: Source, asked: Asked, values: Values) -> bool:
    """Whether the pattern is a name that stands for nothing but a compiled one."""
    pattern = asked.given["pattern"]
    if not isinstance(pattern, ast.Name):
        return False
    if pattern.id in values:
        return _compiles(values[pattern.id][1], asked.module)
    scope = Scope(source, asked.scope, asked.function)
    bound = scope.bindings(pattern.id)
    if not scope.is_local(pattern.id) or scope.parameter(pattern.id) or len(bound) != 1:
        return False
    return _compiles(scope.assignment(bound[0]), asked.module)


def _compiles(value: ast.expr | None, module: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="compile")):
            return name == module
    return False


def find_pattern_caches(source: Source) -> Iterator[Change]:
    """``re.search(rule, text)``: what was compiled once is found without `re`'s own detour."""
    if not source.can_import("functools"):
        return
    values = read_values(source)
    found: dict[str, list[Asked]] = {}
    for asked in find_asked(source):
        pattern, flags = asked.given["pattern"], asked.given.get("flags")
        is_fixed = read_constant(pattern, values, source.top_of(asked.call).lineno) is not None
        is_odd = read_flags(flags, asked.module) is None
        if is_fixed or is_odd or _is_compiled(source, asked, values):
            continue
        before = found.setdefault(asked.scope, [])
        inside = {each for other in before for each in ast.walk(other.call)}
        if asked.call not in inside:
            before.append(asked)
    names: list[str] = []
    for scope, calls in found.items():
        yield _cache(source, scope, calls, values, names)


def _cache(
    source: Source, scope: str, calls: list[Asked], values: Values, names: list[str]
) -> Change:
    edits: list[Edit] = []
    made: dict[str, str] = {}
    imports = {"functools"}
    top = source.top_of(calls[0].call)
    for asked in calls:
        flags = asked.given.get("flags")
        compiling = f"{asked.module}.compile"
        if flags is not None:
            compiling = f"functools.partial({compiling}, flags={source.say(flags)})"
        code = f"{_CACHED}({compiling})"
        if code not in made:
            made[code] = _existing(code, values, top) or source.fresh("_compiled", *names)
            if made[code] not in values:
                names.append(made[code])
                edits.append(("before", top, f"{made[code]} = {code}"))
        said = f"{made[code]}({source.say(asked.given['pattern'])})"
        if asked.method != "compile":
            said += f".{asked.method}({asked.rest})"
        edits.append(("replace", asked.call, said))
        imports.update(_imports(asked))
    what = f"what {scope} compiles is kept"
    return Change(what, calls[0].call.lineno, scope, tuple(edits), tuple(sorted(imports)))


def _existing(code: str, values: Values, top: ast.stmt) -> str | None:
    for name, (line, value) in values.items():
        if line < top.lineno and ast.unparse(value) == code:
            return name
    return None

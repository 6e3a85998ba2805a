"""Compile regular expressions once for the module instead of in each call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile, TextEdit
from fairtrial_codemod.transforms.regex_calls import (
    ModuleValues,
    RegexCall,
    can_compile,
    find_regex_calls,
    read_constant,
    read_flags,
    read_module_values,
)

_CACHED = "functools.lru_cache(maxsize=512)"
"""As many as `re` itself keeps: patterns may come from outside without end."""


def find_patterns(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``re.sub("...", ...)`` with constant or already compiled patterns."""
    values = read_module_values(source)
    names: list[str] = []
    for used in find_regex_calls(source):
        pattern, flags = used.arguments["pattern"], used.arguments.get("flags")
        call, method = used.call, used.method
        number = read_flags(flags, used.module)
        if number is None:
            continue
        if _is_compiled(used, values):
            if method != "compile" and flags is None and isinstance(pattern, ast.Name):
                edit: TextEdit = ("replace", call, f"{pattern.id}.{method}({used.rest})")
                description = f"{pattern.id} is used directly"
                yield CodeChange(description, call.lineno, used.scope.name, (edit,))
            continue
        text = read_constant(pattern, values, source.get_top_statement(call).lineno)
        if text is None or not can_compile(text, number):
            continue
        # Each place has its own constant, so that one change can be left out alone.
        name = source.make_name("_PATTERN", *names)
        names.append(name)
        arguments = ", ".join(source.render(part) for part in (pattern, flags) if part)
        compiled = f"{name} = {used.module}.compile({arguments})"
        edits: tuple[TextEdit, ...] = (
            ("before", source.get_top_statement(call), compiled),
            ("replace", call, name if method == "compile" else f"{name}.{method}({used.rest})"),
        )
        description = f"{name} is compiled once"
        imports = _get_imports(used)
        yield CodeChange(description, call.lineno, used.scope.name, edits, imports)


def _get_imports(used: RegexCall) -> tuple[str, ...]:
    return ("re",) if isinstance(used.call.func, ast.Name) else ()


def _is_compiled(used: RegexCall, values: ModuleValues) -> bool:
    """Return whether the pattern is a name for a compiled one."""
    pattern, scope = used.arguments["pattern"], used.scope
    if not isinstance(pattern, ast.Name):
        return False
    if pattern.id in values:
        return _compiles(values[pattern.id][1], used.module)
    bound = scope.bindings(pattern.id)
    if not scope.is_local(pattern.id) or scope.parameter(pattern.id) or len(bound) != 1:
        return False
    return _compiles(scope.get_value(bound[0]), used.module)


def _compiles(value: ast.expr | None, module: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="compile")):
            return name == module
    return False


def find_pattern_caches(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``re.search(rule, text)``: a cache of its own is faster than that of `re`."""
    if not source.can_import("functools"):
        return
    values = read_module_values(source)
    groups: dict[str, list[RegexCall]] = {}
    for used in find_regex_calls(source):
        line = source.get_top_statement(used.call).lineno
        is_constant = read_constant(used.arguments["pattern"], values, line) is not None
        is_unknown = read_flags(used.arguments.get("flags"), used.module) is None
        if is_constant or is_unknown or _is_compiled(used, values):
            continue
        group = groups.setdefault(used.scope.name, [])
        inside = {node for other in group for node in ast.walk(other.call)}
        if used.call not in inside:
            group.append(used)
    names: list[str] = []
    for calls in groups.values():
        yield _write_cache(source, calls, values, names)


def _write_cache(
    source: SourceFile, calls: list[RegexCall], values: ModuleValues, names: list[str]
) -> CodeChange:
    edits: list[TextEdit] = []
    caches: dict[str, str] = {}
    imports = {"functools"}
    top, scope = source.get_top_statement(calls[0].call), calls[0].scope.name
    for used in calls:
        flags = used.arguments.get("flags")
        function = f"{used.module}.compile"
        if flags is not None:
            function = f"functools.partial({function}, flags={source.render(flags)})"
        code = f"{_CACHED}({function})"
        if code not in caches:
            caches[code] = _find_cache(code, values, top) or source.make_name("_compiled", *names)
            if caches[code] not in values:
                names.append(caches[code])
                edits.append(("before", top, f"{caches[code]} = {code}"))
        new = f"{caches[code]}({source.render(used.arguments['pattern'])})"
        if used.method != "compile":
            new += f".{used.method}({used.rest})"
        edits.append(("replace", used.call, new))
        imports.update(_get_imports(used))
    description = f"the patterns that {scope} compiles are cached"
    line = calls[0].call.lineno
    return CodeChange(description, line, scope, tuple(edits), tuple(sorted(imports)))


def _find_cache(code: str, values: ModuleValues, top: ast.stmt) -> str | None:
    """Return the name of the same cache if an earlier change has written it."""
    for name, (line, value) in values.items():
        if line < top.lineno and ast.unparse(value) == code:
            return name
    return None

"""Regular expressions that stand for themselves: methods of texts find them faster."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Source
from fairtrial_codemod.transforms.regexes import Asked, bind, find_asked, read_values

_SPECIAL = set(".^$*+?{}[]|()")
_PARAMETERS = {
    "split": ("string", "maxsplit"),
    "sub": ("repl", "string", "count"),
    "match": ("string",),
    "search": ("string",),
    "fullmatch": ("string",),
    "findall": ("string",),
}


def find_plain_texts(source: Source) -> Iterator[Change]:
    """``re.sub(",", "", text)``, ``re.split``, and searches that ask only if there is any."""
    for asked in (*find_asked(source), *_find_methods(source)):
        text = _plain(asked.given["pattern"])
        # Who catches what a wrong type raises may catch another exception then.
        is_watched = source.is_watched(asked.call)
        if not text or "flags" in asked.given or is_watched:
            continue
        written = _write(source, asked, text)
        if written is not None:
            node, code = written
            what = f"{text!r} is looked for as it is"
            yield Change(what, asked.call.lineno, asked.scope, (("replace", node, code),))


def _find_methods(source: Source) -> Iterator[Asked]:
    """The same for ``PATTERN.sub(...)`` where ``PATTERN = re.compile(...)``."""
    compiled = {
        name: value.args[0]
        for name, (_, value) in read_values(source).items()
        if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords
        if ast.unparse(value.func) == "re.compile" and source.has_import("re")
    }
    for scope in scopes_of(source):
        for call in own_nodes(scope, ast.Call):
            match call.func:
                case ast.Attribute(value=ast.Name(id=name), attr=method) if name in compiled:
                    given = bind(call, _PARAMETERS.get(method, ()))
                    if given is not None:
                        given = {**given, "pattern": compiled[name]}
                        yield Asked(scope.name, scope.function, call, method, "re", given, "")


def _plain(pattern: ast.expr) -> str | bytes | None:
    """The text that a pattern stands for, if there is only one."""
    if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str | bytes):
        return None
    is_bytes = isinstance(pattern.value, bytes)
    given = pattern.value.decode("latin-1") if isinstance(pattern.value, bytes) else pattern.value
    plain, rest = "", iter(given)
    for char in rest:
        if char == "\\":
            char = next(rest, "a")
            if char.isalnum() or not char.isascii():
                return None
        elif char in _SPECIAL:
            return None
        plain += char
    return plain.encode("latin-1") if is_bytes else plain


def _write(source: Source, asked: Asked, text: str | bytes) -> tuple[ast.expr, str] | None:
    """What is replaced, and by what."""
    subject, call = _receiver(source, asked.given.get("string")), asked.call
    most = asked.given.get("count", asked.given.get("maxsplit"))
    limit = _limit(most)
    if subject is None or limit is None:
        return None
    above = source.parents[call]
    match asked.method:
        case "sub":
            new = asked.given["repl"]
            if isinstance(new, ast.Constant) and type(new.value) is type(text):
                is_plain = "\\" not in repr(new.value)
                return (
                    (call, f"{subject}.replace({text!r}, {new.value!r}{limit})")
                    if is_plain
                    else None
                )
        case "split":
            return call, f"{subject}.split({text!r}{limit})"
        case "findall":
            match above:
                case ast.Call(func=ast.Name(id="len"), args=[_], keywords=[]):
                    if source.is_builtin("len"):
                        return above, f"{subject}.count({text!r})"
        case "search" | "match" | "fullmatch":
            return _ask(source, asked, subject, text)
    return None


def _ask(
    source: Source, asked: Asked, subject: str, text: str | bytes
) -> tuple[ast.expr, str] | None:
    call, above = asked.call, source.parents[asked.call]
    node: ast.expr = call
    is_wanted = True
    match above:
        case ast.Compare(left=it, ops=[ast.Is() | ast.IsNot() as how], comparators=[nothing]):
            if it is not call or ast.unparse(nothing) != "None":
                return None
            node, is_wanted = above, isinstance(how, ast.IsNot)
        case ast.Call(func=ast.Name(id="bool"), args=[_], keywords=[]):
            if not source.is_builtin("bool"):
                return None
            node = above
        case _ if not _is_truth(source, asked):
            return None
    forms: Mapping[str, tuple[str, str]] = {
        "search": (f"{text!r} in {subject}", f"{text!r} not in {subject}"),
        "match": (f"{subject}.startswith({text!r})", f"not {subject}.startswith({text!r})"),
        "fullmatch": (f"{subject} == {text!r}", f"{subject} != {text!r}"),
    }
    return node, f"({forms[asked.method][0 if is_wanted else 1]})"


def _is_truth(source: Source, asked: Asked) -> bool:
    below: ast.AST = asked.call
    for each in source.around(asked.call):
        match each:
            case ast.BoolOp():
                below = each
            case ast.If(test=it) | ast.While(test=it) | ast.IfExp(test=it):
                return it is below
            case ast.comprehension(ifs=tests):
                return below in tests
            case ast.UnaryOp(op=ast.Not()):
                return True
            case _:
                return False
    return False


def _receiver(source: Source, node: ast.expr | None) -> str | None:
    if node is None or isinstance(node, ast.Starred):
        return None
    said = source.say(node)
    is_whole = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return said if is_whole else f"({said})"


def _limit(most: ast.expr | None) -> str | None:
    """How many at most, as texts take it: for `re`, 0 is any number."""
    match most:
        case None | ast.Constant(value=0):
            return ""
        case ast.Constant(value=int(number)) if number > 0 and number is not True:
            return f", {number}"
    return None

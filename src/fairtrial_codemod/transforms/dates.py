"""Dates in the usual form that are read by a format: there is a reader for just that form."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source, binds
from fairtrial_codemod.transforms.analysis.uses import Scope

_NEEDED = ("len", "str", "type", "ValueError")
_DAY = "{0}[4] == {0}[7] == '-'"
_HOUR = "{0}[13] == ':' and {0}[11:13] != '24'"
_MINUTE = "{0}[13] == {0}[16] == ':' and {0}[11:13] != '24'"
_FORMS = {"%Y-%m-%d": (10, _DAY)}
for _between in " T":
    _at = f"{{0}}[10] == '{_between}'"
    _FORMS[f"%Y-%m-%d{_between}%H:%M"] = (16, f"{_DAY} and {_at} and {_HOUR}")
    _FORMS[f"%Y-%m-%d{_between}%H:%M:%S"] = (19, f"{_DAY} and {_at} and {_MINUTE}")
# Some versions read an hour of 24 as the next day's first, which no format does.


def find_dates(source: Source) -> Iterator[Change]:
    """``datetime.strptime(text, "%Y-%m-%d")``: `fromisoformat`, and as before if it refuses."""
    classes = _find_classes(source) if all(map(source.is_builtin, _NEEDED)) else {}
    names: dict[str, str] = {}
    for scope in scopes_of(source) if classes else ():
        if _tries_already(scope):
            continue
        for node in own_nodes(scope, ast.Call):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=owner, attr="strptime"),
                    args=[given, ast.Constant(value=str(form))],
                    keywords=[],
                ):
                    known = classes.get(ast.unparse(owner))
                case _:
                    continue
            top = source.top_of(node)
            if form not in _FORMS or known is None or known >= top.lineno:
                continue
            if isinstance(given, ast.Starred):
                continue
            spelled = ast.unparse(owner)
            name = _find_reader(source, spelled, form, top)
            edits: list[Edit] = []
            if name is None:
                wanted = _define("", spelled, form)
                if wanted not in names:
                    names[wanted] = source.fresh("_read_date", *names.values())
                name = names[wanted]
                edits.append(("helper", top, _define(name, spelled, form)))
            edits.append(("replace", node, f"{name}({source.say(given)})"))
            what = f"dates of the form {form} are read by fromisoformat"
            yield Change(what, node.lineno, scope.name, tuple(edits))


def _find_reader(source: Source, owner: str, form: str, before: ast.stmt) -> str | None:
    """The function of the module that reads such dates already, if there is one."""
    for node in source.tree.body:
        if not isinstance(node, ast.FunctionDef) or node.lineno >= before.lineno:
            continue
        wanted = ast.parse(_define(node.name, owner, form)).body[0]
        if ast.dump(node) == ast.dump(wanted) and source.is_bound_once(node.name):
            return node.name
    return None


def _tries_already(scope: Scope) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "fromisoformat"
        for node in scope.source.walk(scope.function)
    )


def _find_classes(source: Source) -> dict[str, int]:
    """How the class `datetime` is spelled, with the line of its import."""
    counts = Counter(name for node in source.walk(source.tree) for name in binds(node))
    found: dict[str, int] = {}
    for statement in source.tree.body if "*" not in source.bound else ():
        for alias in getattr(statement, "names", ()):
            if not isinstance(alias, ast.alias) or alias.name != "datetime":
                continue
            name = alias.asname or alias.name
            match statement:
                case ast.Import() if counts[name] == 1:
                    found[f"{name}.datetime"] = statement.lineno
                case ast.ImportFrom(module="datetime", level=0) if counts[name] == 1:
                    found[name] = statement.lineno
    return found


def _define(name: str, owner: str, form: str) -> str:
    length, test = _FORMS[form]
    return f"""\
def {name}(text):
    if type(text) is str and len(text) == {length} and {test.format("text")}:
        try:
            return {owner}.fromisoformat(text)
        except ValueError:
            pass
    return {owner}.strptime(text, {form!r})


"""

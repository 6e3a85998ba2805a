"""Write changes into the text of a source; comments, blank lines and style stay as they are."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field

from fairtrial_codemod.analysis.code_patterns import is_same_code
from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile, TextEdit
from fairtrial_codemod.imports import add_imports

Replacement = tuple[int, int, str]
"""The range of characters that is replaced, and the new text."""
_BLANK = re.compile(r"\s*(?:#.*)?", re.DOTALL)


def write_changes(
    source: SourceFile, changes: Iterable[CodeChange]
) -> tuple[str, list[CodeChange]]:
    """Return the source with all changes that can be written and don't overlap, and a list of
    these.
    """
    edits = _Edits(source)
    done = [change for change in changes if edits.take(change)]
    imports = {name for change in done for name in change.imports}
    return add_imports(replace_ranges(source.text, edits.list_replacements()), imports), done


def replace_ranges(text: str, replacements: Iterable[Replacement]) -> str:
    """Return a text with ranges replaced that don't overlap; insertions at one place keep their
    order.
    """
    parts, at = [], 0
    for start, end, new in sorted(replacements, key=lambda part: part[:2]):
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


@dataclass(slots=True)
class _NodeEdits:
    """The edits at one node.

    before: statements to write before it
    replace: code in its place
    after: statements to write after it
    """

    before: list[str] = field(default_factory=list)
    replace: str | None = None
    after: list[str] = field(default_factory=list)


class _Edits:
    """The edits that were taken, by node."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.nodes: dict[ast.AST, _NodeEdits] = {}
        self.replaced: list[tuple[int, int]] = []
        self.end = next((end for end in ("\r\n", "\r", "\n") if end in source.text), "\n")

    def take(self, change: CodeChange) -> bool:
        """Record the edits of a change if all their places can be written and are free."""
        if not all(self._can_write(edit) for edit in change.edits):
            return False
        spans = [(kind, self.source.get_span(node)) for kind, node, _ in change.edits]
        if any(self._is_taken(kind, span) for kind, span in spans):
            return False
        self.replaced += [span for kind, span in spans if kind == "replace"]
        for kind, node, code in change.edits:
            edits = self.nodes.setdefault(node, _NodeEdits())
            match kind:
                case "before":
                    edits.before.append(code)
                case "after":
                    edits.after.append(code)
                case _:
                    edits.replace = code
        return True

    def _is_taken(self, kind: str, span: tuple[int, int]) -> bool:
        """Return whether a node is in code that another change replaces, or around such code."""
        is_whole = kind == "replace"
        return any(
            (start < span[1] and span[0] < end)
            if is_whole
            else (start < span[0] and span[1] <= end) or (start <= span[0] and span[1] < end)
            for start, end in self.replaced
        )

    def _can_write(self, edit: TextEdit) -> bool:
        kind, node, code = edit
        source = self.source
        start, end = source.get_span(node)
        if isinstance(node, ast.expr):
            # Positions in f-strings may be wrong before Python 3.12, and two braces are a brace.
            is_formatted = any(isinstance(up, ast.JoinedStr) for up in source.ancestors(node))
            if is_formatted and code.startswith("{"):
                return False
            return _is_code_of(source.text[start:end], node)
        line_start, line_end = source.get_line_range(start)[0], source.get_line_range(end)[1]
        if source.text[line_start:start].strip() or not _BLANK.fullmatch(source.text[end:line_end]):
            return False  # another statement is in the line
        is_branch = source.text.startswith("elif", start)
        return kind == "replace" or not is_branch

    def list_replacements(self) -> list[Replacement]:
        """Return all edits as ranges of the text."""
        replacements: list[Replacement] = []
        for node, edits in self.nodes.items():
            start, end = self.source.get_span(node)
            line_start, _ = self.source.get_line_range(start)
            line = self.source.text[line_start:start]
            margin = line[: len(line) - len(line.lstrip(" \t\f"))]
            if edits.before:
                replacements.append(self._write_before(node, line_start, edits.before, margin))
            if edits.replace is not None:
                code = _indent(edits.replace, margin)
                if isinstance(node, ast.expr) and self._is_in_parentheses(start, end):
                    code = _strip_parentheses(code)
                replacements.append((start, end, code.replace("\n", self.end)))
            if edits.after:
                place = self.source.get_line_range(end)[1]
                lines = "\n".join(margin + _indent(code, margin) for code in edits.after)
                is_ended = self.source.text[:place].endswith(("\n", "\r"))
                lines = f"{lines}\n" if is_ended else f"\n{lines}"
                replacements.append((place, place, lines.replace("\n", self.end)))
        return replacements

    def _is_in_parentheses(self, start: int, end: int) -> bool:
        return self.source.text[start - 1 : start] == "(" and self.source.text[end : end + 1] == ")"

    def _write_before(
        self, node: ast.AST, place: int, codes: list[str], margin: str
    ) -> Replacement:
        lines = "".join(f"{margin}{_indent(code, margin)}\n" for code in codes)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # Comments above a function stay with it.
            above = self.source.text[:place].splitlines(keepends=True)
            while above and above[-1].lstrip().startswith("#"):
                place -= len(above.pop())
            while above and not above.pop().strip():
                lines += "\n"
        return place, place, lines.replace("\n", self.end)


def _strip_parentheses(code: str) -> str:
    """Return code without the parentheses around a comparison or a conditional expression."""
    if not (code.startswith("(") and _is_code_of(code[1:-1], ast.parse(code, mode="eval").body)):
        return code
    inner = ast.parse(code, mode="eval").body
    return code[1:-1] if isinstance(inner, ast.Compare | ast.IfExp | ast.BoolOp) else code


def _is_code_of(text: str, node: ast.expr) -> bool:
    """Return whether a text is the code of an expression."""
    try:
        return is_same_code(ast.parse(f"({text})", mode="eval").body, node)
    except (SyntaxError, ValueError):
        return False


def _indent(code: str, margin: str) -> str:
    """Return code with its lines after the first indented; strings of several lines stay."""
    if "\n" not in code:
        return code
    indented = textwrap.indent(code, f" {margin}", lambda _: True)
    try:
        block = ast.parse(f"if 1:\n{indented}").body[0]
        is_same = isinstance(block, ast.If) and is_same_code(
            ast.Module(block.body, []), ast.parse(code)
        )
    except SyntaxError:
        is_same = False
    return (code if is_same else ast.unparse(ast.parse(code))).replace("\n", f"\n{margin}")

"""Markdown of reports as a tree of elements, so that pages say the same sentences as reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it.token import Token

TAGS = frozenset(
    ("p", "ul", "ol", "li", "h2", "h3", "h4", "h5", "h6", "blockquote", "hr", "pre", "code")
) | {"strong", "em", "table", "thead", "tbody", "tr", "th", "td"}
"""The elements that a tree may have; scripts make no others."""
Tree = list[Any]
"""Texts, and elements as ``[tag, child, ...]``."""


def parse_markdown(text: str) -> Tree:
    """Return the elements of a Markdown text; what looks like HTML in it stays text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image"])
    return _build(parser.parse(text))


def _build(tokens: list[Token]) -> Tree:
    root: Tree = []
    stack: list[Tree] = [root]
    for token in tokens:
        if token.type == "inline":
            stack[-1].extend(_build(token.children or []))
        elif token.type in ("fence", "code_block"):
            stack[-1].append(["pre", token.content])
        elif token.type == "code_inline":
            stack[-1].append(["code", token.content])
        elif token.type in ("softbreak", "hardbreak"):
            stack[-1].append(" ")
        elif token.nesting == 0:
            stack[-1].append(token.content)
        elif token.nesting < 0:
            stack.pop()
        elif token.hidden or token.tag not in TAGS:  # a paragraph of a tight list
            stack.append(stack[-1])
        else:
            element: Tree = [token.tag]
            stack[-1].append(element)
            stack.append(element)
    return root

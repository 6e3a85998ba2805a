"""Composition of YAML text to nodes, from PyYAML's parser events."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairtrial.core.documents.nodes import MERGE, Collection, Composer, Node, Scalar
from fairtrial.core.errors import Mistake, StudyError

if TYPE_CHECKING:
    import yaml

_MAX_DIGITS = 4300
"""How many digits Python converts to a number by default."""
_CORE = "tag:yaml.org,2002:"
_NOT_ALLOWED = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # by YAML's standard
)
# Parts of the parser's messages, each with its usual cause.
_CAUSES = (
    ("mapping values are not allowed", "check the indentation; a text with ': ' needs quotes"),
    ("expected key", "check the indentation"),
    ("expected '-' indicator", "check the indentation"),
    ("<block end>", "check the indentation"),
    ("end of stream", "a quote or bracket is not closed"),
    ("parsing a flow", "a bracket is not closed, or a text with , [ ] { } in it needs quotes"),
    ("scanning an alias", "a text that begins with * needs quotes"),
    ("scanning an anchor", "a text that begins with & needs quotes"),
)


def compose_yaml(text: str) -> Node | None:
    """Compose a YAML text to a tree; None if it is empty. Raises `StudyError` for bad syntax."""
    import yaml

    forbidden = _NOT_ALLOWED.search(text)
    if forbidden:
        line, column = _position(text, forbidden.start())
        code = ord(forbidden.group())
        message = f"column {column} holds the character U+{code:04X}, which YAML does not allow"
        hint = f'in double quotes it is written "\\u{code:04x}"'
        raise StudyError(Mistake((), message, hint, line))
    composer = _YamlComposer()
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        raise StudyError(_syntax_mistake(error, text)) from None
    except yaml.YAMLError as error:
        raise StudyError(f"not valid YAML: {' '.join(str(error).split())}") from None
    return composer.root


def _position(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _syntax_mistake(error: yaml.MarkedYAMLError, text: str) -> Mistake:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    message = " ".join(str(part) for part in (error.problem, error.context) if part)
    first_line = error.context_mark.line + 1 if error.context_mark else line
    if first_line != line:
        message += f" that begins on line {first_line}"
    hint = next((advice for words, advice in _CAUSES if words in message), "")
    lines = text.splitlines()
    char = lines[line - 1][column - 1 : column] if line <= len(lines) else ""
    if char == "\t":
        hint = "indent with spaces, not tabs"
    elif "cannot start any token" in message:
        hint = f"a text that begins with {char} needs quotes"
    return Mistake((), f"not valid YAML at column {column}: {message}", hint, line)


class _YamlComposer(Composer):
    """Composes a tree from the events of PyYAML's parser."""

    def __init__(self) -> None:
        import yaml

        super().__init__()
        self._anchors: dict[str, Node] = {}
        self._documents = 0
        self._tag_of: Callable[..., str] = yaml.resolver.Resolver().resolve
        construct = yaml.constructor.SafeConstructor()
        self._constructors: dict[str, Callable[[Any], Any]] = {
            "int": construct.construct_yaml_int,
            "float": construct.construct_yaml_float,
            "bool": construct.construct_yaml_bool,
        }

    def take(self, event: Any) -> None:
        """Process the next event; raises `StudyError` for bad aliases and a second document."""
        import yaml

        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, line)
            self._register_anchor(event, node)
            self.add(node)
        elif isinstance(event, yaml.CollectionStartEvent):
            mapping = isinstance(event, yaml.MappingStartEvent)
            collection = Collection(line, mapping)
            if event.tag not in (None, "!", _CORE + ("map" if mapping else "seq")):
                collection.problem, collection.hint = _refused_tag(event.tag)
            self._register_anchor(event, collection)
            self.open(collection)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.close()
        elif isinstance(event, yaml.AliasEvent):
            self.add(self._resolve_alias(event, line))
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                message = "a second document begins here (---)"
                raise StudyError(Mistake((), message, "one file holds one study", line))

    def _register_anchor(self, event: Any, node: Node) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = node

    def _resolve_alias(self, event: Any, line: int) -> Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            message = f"the alias *{event.anchor} has no anchor &{event.anchor} above it"
            raise StudyError(Mistake((), message, "", line))
        if self.is_open(node):
            message = f"the alias *{event.anchor} stands inside of what it stands for"
            raise StudyError(Mistake((), message, "", line))
        return node

    def _scalar(self, event: Any, line: int) -> Scalar:
        import yaml

        text, tag = event.value, event.tag
        is_plain = tag is None and not event.style
        if tag is None or tag == "!":
            tag = self._tag_of(yaml.ScalarNode, text, event.implicit)
        kind = tag.removeprefix(_CORE) if tag.startswith(_CORE) else ""
        node = Scalar(line, text, text, is_plain)
        if kind == "null":
            node.value = None
        elif kind == "merge":
            node.value = MERGE
        elif kind in self._constructors:
            self._construct(node, tag, kind)
        elif kind == "timestamp":
            node.problem = f"`{text}` is read as a date, which a study can't hold"
            node.hint = "put it in quotes"
        elif kind not in ("str", "value"):
            node.problem, node.hint = _refused_tag(tag)
        return node

    def _construct(self, node: Scalar, tag: str, kind: str) -> None:
        import yaml

        try:
            if len(node.text) > _MAX_DIGITS:
                raise ValueError
            node.value = self._constructors[kind](yaml.ScalarNode(tag, node.text))
            str(node.value)  # fails for some numbers that can be read, such as long hex ones
        except (ValueError, KeyError):
            shown = node.text if len(node.text) <= 40 else node.text[:37] + "..."
            expected = "true or false" if kind == "bool" else "a number"
            node.value = node.text
            node.problem = f"`{shown}` can't be read as {expected}"
            node.hint = "put it in quotes for the text"


def _refused_tag(tag: str) -> tuple[str, str]:
    shown = f"!!{tag.removeprefix(_CORE)}" if tag.startswith(_CORE) else tag
    problem = f"the tag {shown} is not allowed: a study holds texts, numbers, lists and mappings"
    return problem, "put the value in quotes" if shown == "!!binary" else "remove the tag"

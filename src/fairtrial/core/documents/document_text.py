"""The text of YAML and JSON files, made only if it can be read back unchanged."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairtrial.core.canonical import DEPTH_LIMIT, TOO_DEEP
from fairtrial.core.documents.ambiguous_scalars import looks_like_number
from fairtrial.core.documents.nodes import SIZE_LIMIT_BYTES, VALUE_LIMIT, replace_surrogates
from fairtrial.core.errors import FieldPath, Mistake, StudyError

if TYPE_CHECKING:
    import yaml

LINE_WIDTH = 100


def format_document(data: Any, format: str) -> str:
    """Return plain data as the text of a ``yaml`` or ``json`` file.

    Raises `StudyError` for a value that couldn't be read back, such as half of a surrogate pair,
    and for data that is too large or too deep for a file.
    """
    if format not in ("yaml", "json"):
        raise StudyError(f"expected yaml or json as the format, got {format!r}")
    mistakes = list(_find_unwritable(data))
    if mistakes:
        raise StudyError(mistakes)
    text = _format_json(data) if format == "json" else _format_yaml(data)
    if len(text.encode("utf-8")) > SIZE_LIMIT_BYTES:
        raise StudyError(f"would be larger than {SIZE_LIMIT_BYTES // 1024**2} MB")
    return text


def _format_json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _format_yaml(data: Any) -> str:
    import yaml

    text: str = yaml.dump(
        data, Dumper=_make_dumper(), sort_keys=False, allow_unicode=True, width=LINE_WIDTH
    )
    return text


def _find_unwritable(data: Any) -> Iterator[Mistake]:
    """Yield a mistake for each value that a file can't contain, or that couldn't be read back."""
    for count, (path, value) in enumerate(_walk(data, ()), start=1):
        if count > VALUE_LIMIT:
            yield Mistake((), f"holds more than {VALUE_LIMIT:,} values")
            return
        if isinstance(value, str) and replace_surrogates(value) != value:
            message = "holds half of a surrogate pair, which no file can hold"
            yield Mistake(path, message, "remove it")
        elif isinstance(value, int):
            try:
                str(value)
            except ValueError:
                yield Mistake(path, "has too many digits for a number", "make it a text")
        elif isinstance(value, (dict, list)) and len(path) >= DEPTH_LIMIT:
            yield Mistake(path[:3], TOO_DEEP)


def _walk(data: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    """Yield all values and keys with their paths, down to `DEPTH_LIMIT`."""
    yield path, data
    if not isinstance(data, (dict, list)) or len(path) >= DEPTH_LIMIT:
        return
    for key, item in data.items() if isinstance(data, dict) else enumerate(data):
        name = replace_surrogates(key) if isinstance(key, str) else key
        if isinstance(key, str):
            yield (*path, name), key
        yield from _walk(item, (*path, name))


@functools.cache
def _make_dumper() -> type[yaml.SafeDumper]:
    import yaml

    # The Python implementation even if PyYAML's C one is installed: the bytes must be the same.
    class DocumentDumper(yaml.SafeDumper):
        """Indents lists, writes no aliases, and quotes texts that could be read as other values."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

    def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = None
        if _fits_block(text):
            style = "|"
        elif not text.isprintable():
            style = '"'  # the only style that can escape characters
        elif looks_like_number(text) or text.lower() in ("y", "n"):
            style = "'"  # PyYAML reads it as text without quotes, but other readers don't
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    DocumentDumper.add_representer(str, represent_text)
    return DocumentDumper


def _fits_block(text: str) -> bool:
    """Return whether a text can be written as a YAML block scalar without changes."""
    lines = text.removesuffix("\n").split("\n")
    return (
        "\n" in text
        and lines[0][:1].strip() != ""
        and lines[-1] != ""
        and all(line.isprintable() and line == line.rstrip() for line in lines)
    )

"""Write study files atomically, and only if they can be read back unchanged."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.core import FieldPath, Mistake, StudyError, atomic_write, canonical, documents
from fairtrial.study.files.brief import dump_brief
from fairtrial.study.model.study import Study

if TYPE_CHECKING:
    import yaml

LINE_WIDTH = 100


def write_study(
    study: Study, path: str | os.PathLike[str], format: str, *, brief: bool = False
) -> Path:
    """Write a study as ``yaml`` or ``json``, and return the path.

    All fields are written, as other programs may expect them; with `brief` only those that differ
    from their defaults. The file is replaced atomically. Raises `StudyError`, and writes nothing,
    if the study has a value that couldn't be read back, such as half of a surrogate pair.
    """
    target = Path(path)
    try:
        text = _format_study(study, format, brief=brief)
        if len(text.encode("utf-8")) > documents.SIZE_LIMIT_BYTES:
            raise StudyError(f"would be larger than {documents.SIZE_LIMIT_BYTES // 1024**2} MB")
    except StudyError as error:
        raise StudyError(error.mistakes, source=str(target)) from None
    with atomic_write(target) as file:
        file.write(text)
    return target


def _format_study(study: Study, format: str, *, brief: bool) -> str:
    if format not in ("yaml", "json"):
        raise StudyError(f"expected yaml or json as the format, got {format!r}")
    try:
        data = dump_brief(study) if brief else study.to_dict()
    except RecursionError:
        raise StudyError(canonical.TOO_DEEP) from None
    mistakes = list(_find_unwritable(data))
    if mistakes:
        raise StudyError(mistakes)
    if format == "json":
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    import yaml

    text: str = yaml.dump(
        data, Dumper=_make_dumper(), sort_keys=False, allow_unicode=True, width=LINE_WIDTH
    )
    return text


def _find_unwritable(data: Any) -> Iterator[Mistake]:
    """Yield a mistake for each value that a file can't contain, or that couldn't be read back."""
    for count, (path, value) in enumerate(_walk(data, ()), start=1):
        if count > documents.VALUE_LIMIT:
            yield Mistake((), f"holds more than {documents.VALUE_LIMIT:,} values")
            return
        if isinstance(value, str) and documents.replace_surrogates(value) != value:
            message = "holds half of a surrogate pair, which no file can hold"
            yield Mistake(path, message, "remove it")
        elif isinstance(value, int):
            try:
                str(value)
            except ValueError:
                yield Mistake(path, "has too many digits for a number", "make it a text")
        elif isinstance(value, (dict, list)) and len(path) >= canonical.DEPTH_LIMIT:
            yield Mistake(path[:3], canonical.TOO_DEEP)


def _walk(data: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    """Yield all values and keys with their paths, down to `DEPTH_LIMIT`."""
    yield path, data
    if not isinstance(data, (dict, list)) or len(path) >= canonical.DEPTH_LIMIT:
        return
    for key, item in data.items() if isinstance(data, dict) else enumerate(data):
        name = documents.replace_surrogates(key) if isinstance(key, str) else key
        if isinstance(key, str):
            yield (*path, name), key
        yield from _walk(item, (*path, name))


@functools.cache
def _make_dumper() -> type[yaml.SafeDumper]:
    import yaml

    # The Python implementation even if PyYAML's C one is installed: the bytes must be the same.
    class StudyDumper(yaml.SafeDumper):
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
        elif documents.looks_like_number(text) or text.lower() in ("y", "n"):
            style = "'"  # PyYAML reads it as text without quotes, but other readers don't
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    StudyDumper.add_representer(str, represent_text)
    return StudyDumper


def _fits_block(text: str) -> bool:
    """Return whether a text can be written as a YAML block scalar without changes."""
    lines = text.removesuffix("\n").split("\n")
    return (
        "\n" in text
        and lines[0][:1].strip() != ""
        and lines[-1] != ""
        and all(line.isprintable() and line == line.rstrip() for line in lines)
    )

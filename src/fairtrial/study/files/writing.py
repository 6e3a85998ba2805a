"""Writing study files: whole or not at all, and read back as they were."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.core import (
    DEPTH_LIMIT,
    SIZE_LIMIT_BYTES,
    TOO_DEEP,
    VALUE_LIMIT,
    Mistake,
    Place,
    StudyError,
    looks_like_number,
    printable,
    replacing,
)
from fairtrial.study.files.brief import dump_brief
from fairtrial.study.model.study import Study

if TYPE_CHECKING:
    import yaml

LINE_WIDTH = 100


def write_study(
    study: Study, path: str | os.PathLike[str], format: str, *, brief: bool = False
) -> Path:
    """Write a study as ``yaml`` or ``json``; returns the path.

    All fields are written, for readers that expect them; with `brief` only those that say
    something, for people.

    The file takes its place in one step: a reader sees the old one or the new one. What couldn't be
    read back, such as half of a surrogate pair, is refused, and nothing is written.
    """
    target = Path(path)
    try:
        text = _spell(study, format, brief=brief)
        if len(text.encode("utf-8")) > SIZE_LIMIT_BYTES:
            raise StudyError(f"would be larger than {SIZE_LIMIT_BYTES // 1024**2} MB")
    except StudyError as error:
        raise StudyError(error.mistakes, source=str(target)) from None
    with replacing(target) as file:
        file.write(text)
    return target


def _spell(study: Study, format: str, *, brief: bool) -> str:
    if format not in ("yaml", "json"):
        raise StudyError(f"expected yaml or json as the format, got {format!r}")
    try:
        data = dump_brief(study) if brief else study.to_dict()
    except RecursionError:
        raise StudyError(TOO_DEEP) from None
    mistakes = list(_unwritable(data))
    if mistakes:
        raise StudyError(mistakes)
    if format == "json":
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    import yaml

    text: str = yaml.dump(
        data, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=LINE_WIDTH
    )
    return text


def _unwritable(data: Any) -> Iterator[Mistake]:
    """What a study can hold in memory and no reader would give back."""
    for count, (path, value) in enumerate(_walk(data, ()), start=1):
        if count > VALUE_LIMIT:
            yield Mistake((), f"holds more than {VALUE_LIMIT:,} values")
            return
        if isinstance(value, str) and printable(value) != value:
            message = "holds half of a surrogate pair, which no file can hold"
            yield Mistake(path, message, "remove it")
        elif isinstance(value, int):
            try:
                str(value)
            except ValueError:
                yield Mistake(path, "has too many digits for a number", "make it a text")
        elif isinstance(value, (dict, list)) and len(path) >= DEPTH_LIMIT:
            yield Mistake(path[:3], TOO_DEEP)


def _walk(data: Any, path: Place) -> Iterator[tuple[Place, Any]]:
    """All values and keys, each with its path, down to the deepest that may be."""
    yield path, data
    if not isinstance(data, (dict, list)) or len(path) >= DEPTH_LIMIT:
        return
    for key, item in data.items() if isinstance(data, dict) else enumerate(data):
        name = printable(key) if isinstance(key, str) else key
        if isinstance(key, str):
            yield (*path, name), key
        yield from _walk(item, (*path, name))


@functools.cache
def _dumper() -> type[yaml.SafeDumper]:
    import yaml

    # The one in Python, also where there is one in C: the same study gives the same bytes.
    class StudyDumper(yaml.SafeDumper):
        """Lists indented, no aliases, texts that can't be mistaken."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

    def spell_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = None
        if _fits_block(text):
            style = "|"
        elif not text.isprintable():
            style = '"'  # the only one that spells every character
        elif looks_like_number(text) or text.lower() in ("y", "n"):
            style = "'"  # a text to PyYAML even without, but not to every reader
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    StudyDumper.add_representer(str, spell_text)
    return StudyDumper


def _fits_block(text: str) -> bool:
    """Whether a text can stand as a block of lines, as it is."""
    lines = text.removesuffix("\n").split("\n")
    return (
        "\n" in text
        and lines[0][:1].strip() != ""
        and lines[-1] != ""
        and all(line.isprintable() and line == line.rstrip() for line in lines)
    )

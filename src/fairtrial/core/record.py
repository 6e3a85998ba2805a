"""The base of every record of a study: frozen, typed, and checked when it is made.

A record is a frozen dataclass. Its annotations are the only description of its fields: they
convert and check what Python code passes, what a file holds (`fairtrial.study.files`) and what the
JSON Schema says. `build` turns plain data into a record and gathers *all* mistakes on the way.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from fairtrial.core.canonical import SAME_KEY, TOO_DEEP, key_text, plain
from fairtrial.core.errors import Mistake, Place, StudyError, did_you_mean
from fairtrial.core.fields import field_types, required_fields

T = TypeVar("T")
MOST_BITS = 14_000
"""How large a whole number may be: Python writes down no more than 4,300 digits."""


class Record:
    """Checks and tidies its fields on creation, and says all that is wrong with them at once."""

    __slots__ = ()

    def __post_init__(self) -> None:
        mistakes: list[Mistake] = []
        for name, hint in field_types(type(self)).items():
            given = getattr(self, name)
            value = convert(given, hint, (name,), mistakes)
            if value is not given:
                object.__setattr__(self, name, value)
        if not mistakes:
            self._derive()
            mistakes.extend(self._mistakes())
        if mistakes:
            raise StudyError(mistakes, source=type(self).__name__)

    def _derive(self) -> None:
        """Fill what follows from other fields (`_set`)."""

    def _mistakes(self) -> Iterator[Mistake]:
        """What the types alone can't say; paths start at this record."""
        return iter(())

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def _short_form(cls, value: Any) -> Mapping[str, Any] | None:
        """The fields that a shorter way of writing this record stands for, where there is one."""
        return None

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: Place, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        """`data` with the keys of older files taken out or moved to where they live now."""
        return data


def blank(**texts: str) -> Iterator[Mistake]:
    """A mistake for each named text that is empty or only white space."""
    for name, text in texts.items():
        if not text.strip():
            yield Mistake((name,), "must not be empty")


def build(cls: type[T], data: Any, path: Place, mistakes: list[Mistake]) -> T:
    """Make a `cls` (a dataclass) from plain data, appending what is wrong to `mistakes`.

    With mistakes the result is provisional: fields that could not be read hold their defaults, so
    that checks across records can still run and report in the same go. Callers raise afterwards.
    """
    if isinstance(data, cls):
        return data
    is_record = issubclass(cls, Record)
    if is_record and not isinstance(data, Mapping):
        short = cls._short_form(data)  # type: ignore[attr-defined]
        data = short if short is not None else data
    if not isinstance(data, Mapping):
        mistakes.append(Mistake(path, f"expected a mapping ({_sketch(cls)}), got {describe(data)}"))
        return _provisional(cls, {})
    before = len(mistakes)
    data = {str(key): value for key, value in data.items()}
    if is_record:
        data = cls._older_form(data, path, mistakes)  # type: ignore[attr-defined]
    hints = field_types(cls)
    mistakes.extend(
        Mistake((*path, key), "unknown key", did_you_mean(key, hints))
        for key in data
        if key not in hints
    )
    mistakes.extend(
        Mistake(path, f"'{key}' is missing") for key in required_fields(cls) if key not in data
    )
    fields, sound = _read_fields(hints, data, path, mistakes)
    if len(mistakes) == before:
        try:
            return cls(**fields)
        except StudyError as error:
            mistakes.extend(mistake.under(path) for mistake in error.mistakes)
            return _provisional(cls, fields)
    made = _provisional(cls, fields)
    if isinstance(made, Record):
        # Only what is wrong with fields that could be read: the rest may follow from the mistakes.
        further = (mistake for mistake in made._mistakes() if sound & set(mistake.path[:1]))
        mistakes.extend(mistake.under(path) for mistake in further)
    return made


def _read_fields(
    hints: Mapping[str, Any], data: Mapping[str, Any], path: Place, mistakes: list[Mistake]
) -> tuple[dict[str, Any], set[str]]:
    """The fields that could be read, and the names of those with nothing wrong in them."""
    fields: dict[str, Any] = {}
    sound: set[str] = set()
    for key in (key for key in hints if key in data):
        seen = len(mistakes)
        value = convert(data[key], hints[key], (*path, key), mistakes)
        if len(mistakes) == seen:
            sound.add(key)
        if key in sound or isinstance(value, (tuple, Record)):
            fields[key] = value
    return fields, sound


def _provisional(cls: type[T], fields: Mapping[str, Any]) -> T:
    made = object.__new__(cls)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name in fields:
            value = fields[field.name]
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            value = _empty(field_types(cls)[field.name])
        object.__setattr__(made, field.name, value)
    if isinstance(made, Record):
        made._derive()
    return made


def _empty(hint: Any) -> Any:
    origin = typing.get_origin(hint) or hint
    return origin() if origin in (str, tuple, int, float, bool) else None


def convert(value: Any, hint: Any, path: Place, mistakes: list[Mistake]) -> Any:
    """`value` as the annotated type has it; what doesn't fit is appended to `mistakes`."""
    if hint is Any:
        return _convert_plain(value, path, mistakes)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(value, args, path, mistakes)
    if origin is typing.Literal:
        if value in args and type(value) in {type(arg) for arg in args}:
            return value
        return _refuse(mistakes, path, " or ".join(map(repr, args)), value)
    if origin is tuple:
        return _convert_tuple(value, args, path, mistakes)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _convert_mapping(value, args, path, mistakes)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _convert_enum(value, hint, path, mistakes)
    if hint is Path:
        return (
            Path(value)
            if isinstance(value, (str, Path))
            else _refuse(mistakes, path, "a path", value)
        )
    if dataclasses.is_dataclass(hint):
        return build(typing.cast("type[Any]", hint), value, path, mistakes)
    return _convert_scalar(value, hint, path, mistakes)


def _convert_plain(value: Any, path: Place, mistakes: list[Mistake]) -> Any:
    try:
        return plain(value, path)
    except StudyError as error:
        mistakes.extend(error.mistakes)
    except RecursionError:
        mistakes.append(Mistake(path, TOO_DEEP))
    return None


def _convert_union(value: Any, args: tuple[Any, ...], path: Place, mistakes: list[Mistake]) -> Any:
    if value is None and types.NoneType in args:
        return None
    options = [arg for arg in args if arg is not types.NoneType]
    for option in options[:-1]:
        trial: list[Mistake] = []
        converted = convert(value, option, path, trial)
        if not trial:
            return converted
    return convert(value, options[-1], path, mistakes)


def _convert_tuple(value: Any, args: tuple[Any, ...], path: Place, mistakes: list[Mistake]) -> Any:
    if not isinstance(value, (list, tuple)):
        is_one = isinstance(value, (str, int, float))
        advice = "put it in [ ]" if is_one else "each item of a list begins with '- '"
        return _refuse(mistakes, path, "a list", value, advice)
    if len(args) == 2 and args[1] is ...:
        args = (args[0],) * len(value)
    if len(value) != len(args):
        return _refuse(mistakes, path, f"a list of {len(args)}", value)
    items = []
    for index, (item, arg) in enumerate(zip(value, args, strict=True)):
        before = len(mistakes)
        converted = convert(item, arg, (*path, index), mistakes)
        # What can't be read keeps its place, so that later ones are not miscounted.
        unread = converted is None and len(mistakes) > before
        items.append(_empty(arg) if unread else converted)
    return tuple(items)


def _convert_mapping(
    value: Any, args: tuple[Any, ...], path: Place, mistakes: list[Mistake]
) -> Any:
    if not isinstance(value, Mapping):
        return _refuse(mistakes, path, "a mapping", value)
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = key_text(key)
        if name in made:
            mistakes.append(Mistake((*path, name), SAME_KEY))
        made[name] = convert(item, args[1], (*path, name), mistakes)
    return made


def _convert_enum(value: Any, hint: type[Enum], path: Place, mistakes: list[Mistake]) -> Any:
    if isinstance(value, hint):
        return value
    known = [str(member.value) for member in hint]
    if isinstance(value, str) and value in known:
        return hint(value)
    message = f"expected one of {', '.join(known)}; got {describe(value)}"
    advice = did_you_mean(value, known) if isinstance(value, str) else ""
    mistakes.append(Mistake(path, message, advice if advice.startswith("did") else ""))
    return None


def _convert_scalar(value: Any, hint: Any, path: Place, mistakes: list[Mistake]) -> Any:
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is float and is_number:
        try:
            return _convert_plain(float(value), path, mistakes)
        except OverflowError:
            return _refuse(mistakes, path, "a number up to 1e308", value)
    if hint is int and is_number and isinstance(value, int) and value.bit_length() < MOST_BITS:
        return int(value)
    if hint in (str, bool) and isinstance(value, hint):
        return str(value) if hint is str else value
    advice = ""
    if hint is str and isinstance(value, bool):
        advice = f'put it in quotes: "{describe(value)}"'
    elif hint is str and is_number:
        advice = "put it in quotes"
    elif hint in (int, float) and isinstance(value, str):
        alone = "without quotes" if re.fullmatch(r"[-+.\deE]+", value) else "without a unit"
        advice = f"a number stands {alone}" if re.search(r"\d", value) else ""
    return _refuse(mistakes, path, names.get(hint, str(hint)), value, advice)


def _refuse(
    mistakes: list[Mistake], path: Place, expected: str, value: Any, advice: str = ""
) -> None:
    mistakes.append(Mistake(path, f"expected {expected}, got {describe(value)}", advice))


def describe(value: Any) -> str:
    """A value as a message shows it: its kind and, where that is short, itself."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = value if len(value) <= 40 else value[:37] + "..."
        return f"the text {shown!r}"
    if isinstance(value, (int, float)):
        text = (
            f"{value!r}" if not isinstance(value, int) or abs(value) < 10**40 else "a huge number"
        )
        return f"the number {text}" if text[0] != "a" else text
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return f"a {type(value).__name__}"


def _sketch(cls: type[Any]) -> str:
    names = list(required_fields(cls)) or list(field_types(cls))[:3]
    return ", ".join(names) + ", ..."


def dump(value: Any) -> Any:
    """A record (or a tuple or mapping of them) as plain data that `build` reads back."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: dump(getattr(value, name)) for name in field_types(type(value))}
    if isinstance(value, tuple):
        return [dump(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in value.items()}
    return plain(value)

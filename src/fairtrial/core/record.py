"""Records: frozen, typed dataclasses whose fields are converted and checked on creation.

The annotations are the only description of the fields: values passed from Python, values read from
files and the JSON Schema all follow them. `build_record` makes a record from plain data and
collects *all* mistakes.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from fairtrial.core.canonical import DUPLICATE_KEY, TOO_DEEP, key_text, to_plain
from fairtrial.core.errors import FieldPath, Mistake, StudyError, did_you_mean
from fairtrial.core.fields import field_types, fields_to_dump, required_fields

T = TypeVar("T")
MAX_INTEGER_BITS = 14_000
"""How large a whole number may be: Python converts no more than 4,300 digits to text."""


class Record:
    """Base class that converts and checks fields on creation, and reports all mistakes at once.

    Subclasses are frozen dataclasses; they override `_derive`, `_mistakes`, `_short_form` and
    `_older_form` as needed.
    """

    __slots__ = ()
    _short_field: ClassVar[str] = ""
    _file_keys: ClassVar[Mapping[str, str]] = {}
    """The keys in files of fields whose names can't be theirs, such as words of Python."""

    def __post_init__(self) -> None:
        mistakes: list[Mistake] = []
        for name, hint in field_types(type(self)).items():
            given = getattr(self, name)
            value = convert_value(given, hint, (name,), mistakes)
            if value is not given:
                object.__setattr__(self, name, value)
        if not mistakes:
            self._derive()
            mistakes.extend(self._mistakes())
        if mistakes:
            raise StudyError(mistakes, source=type(self).__name__)

    def _derive(self) -> None:
        """Set fields that follow from other fields, with `_set`."""

    def _mistakes(self) -> Iterator[Mistake]:
        """Yield mistakes that types can't express; their paths start at this record."""
        return iter(())

    def _blank_mistakes(self, *names: str) -> Iterator[Mistake]:
        """Yield a mistake for each named field whose text is empty or white space."""
        for name in names:
            if not str(getattr(self, name)).strip():
                yield Mistake((name,), "must not be empty")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def _short_form(cls, value: Any) -> Mapping[str, Any] | None:
        """Return the fields for a value that abbreviates this record; None if it is not one.

        By default a text is short for the field that `_short_field` names.
        """
        is_short = bool(cls._short_field) and isinstance(value, str)
        return {_file_key(cls, cls._short_field): value} if is_short else None

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        """Return `data` with keys of older file formats removed or translated."""
        return data


def build_record(cls: type[T], data: Any, path: FieldPath, mistakes: list[Mistake]) -> T:
    """Make a dataclass from plain data, and append what is wrong to `mistakes`.

    With mistakes the result is provisional: fields that could not be read hold their defaults, so
    that checks across records can still run and add their mistakes. Callers raise afterwards.

    path: where `data` stands in the definition, for messages
    """
    if isinstance(data, cls):
        return data
    is_record = issubclass(cls, Record)
    if is_record and not isinstance(data, Mapping):
        short = cls._short_form(data)  # type: ignore[attr-defined]
        data = short if short is not None else data
    if not isinstance(data, Mapping):
        mistakes.append(
            Mistake(
                path, f"expected a mapping ({_list_main_fields(cls)}), got {describe_value(data)}"
            )
        )
        return _make_provisional(cls, {})
    before = len(mistakes)
    data = {str(key): value for key, value in data.items()}
    if is_record:
        data = cls._older_form(data, path, mistakes)  # type: ignore[attr-defined]
    hints = field_types(cls)
    keys = {_file_key(cls, name): name for name in hints}
    mistakes.extend(
        Mistake((*path, key), "unknown key", did_you_mean(key, keys))
        for key in data
        if key not in keys
    )
    data = {keys[key]: value for key, value in data.items() if key in keys}
    mistakes.extend(
        Mistake(path, f"'{_file_key(cls, name)}' is missing")
        for name in required_fields(cls)
        if name not in data
    )
    fields, valid_names = _read_fields(hints, data, path, mistakes)
    if len(mistakes) == before:
        try:
            return cls(**fields)
        except StudyError as error:
            mistakes.extend(mistake.under(path) for mistake in error.mistakes)
            return _make_provisional(cls, fields)
    record = _make_provisional(cls, fields)
    if isinstance(record, Record):
        # Only mistakes in fields that could be read: others may follow from those found above.
        further = (mistake for mistake in record._mistakes() if valid_names & set(mistake.path[:1]))
        mistakes.extend(mistake.under(path) for mistake in further)
    return record


def _file_key(cls: type[Any], name: str) -> str:
    return cls._file_keys.get(name, name) if issubclass(cls, Record) else name


def _read_fields(
    hints: Mapping[str, Any], data: Mapping[str, Any], path: FieldPath, mistakes: list[Mistake]
) -> tuple[dict[str, Any], set[str]]:
    """Return the fields that could be read, and the names of those without mistakes."""
    fields: dict[str, Any] = {}
    valid_names: set[str] = set()
    for key in (key for key in hints if key in data):
        before = len(mistakes)
        value = convert_value(data[key], hints[key], (*path, key), mistakes)
        if len(mistakes) == before:
            valid_names.add(key)
        if key in valid_names or isinstance(value, (tuple, Record)):
            fields[key] = value
    return fields, valid_names


def _make_provisional(cls: type[T], fields: Mapping[str, Any]) -> T:
    """Make a dataclass without its checks; fields that are not given hold defaults."""
    record = object.__new__(cls)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name in fields:
            value = fields[field.name]
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            value = _make_empty_value(field_types(cls)[field.name])
        object.__setattr__(record, field.name, value)
    if isinstance(record, Record):
        record._derive()
    return record


def _make_empty_value(hint: Any) -> Any:
    origin = typing.get_origin(hint) or hint
    return origin() if origin in (str, tuple, int, float, bool) else None


def convert_value(value: Any, hint: Any, path: FieldPath, mistakes: list[Mistake]) -> Any:
    """Convert a value to an annotated type; returns None and adds a mistake if it doesn't fit."""
    if hint is Any:
        return _convert_plain(value, path, mistakes)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(value, args, path, mistakes)
    if origin is typing.Literal:
        if value in args and type(value) in {type(arg) for arg in args}:
            return value
        return _add_mistake(mistakes, path, " or ".join(map(repr, args)), value)
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
            else _add_mistake(mistakes, path, "a path", value)
        )
    if dataclasses.is_dataclass(hint):
        return build_record(typing.cast("type[Any]", hint), value, path, mistakes)
    return _convert_scalar(value, hint, path, mistakes)


def _convert_plain(value: Any, path: FieldPath, mistakes: list[Mistake]) -> Any:
    try:
        return to_plain(value, path)
    except StudyError as error:
        mistakes.extend(error.mistakes)
    except RecursionError:
        mistakes.append(Mistake(path, TOO_DEEP))
    return None


def _convert_union(
    value: Any, args: tuple[Any, ...], path: FieldPath, mistakes: list[Mistake]
) -> Any:
    if value is None and types.NoneType in args:
        return None
    options = [arg for arg in args if arg is not types.NoneType]
    likeliest = _likeliest(value, options)
    for option in options:
        if option is likeliest and option is options[-1]:
            break
        trial: list[Mistake] = []
        converted = convert_value(value, option, path, trial)
        if not trial:
            return converted
    return convert_value(value, likeliest, path, mistakes)


def _likeliest(value: Any, options: list[Any]) -> Any:
    """Return the type that a value was probably meant to have, for messages; else the last."""
    kinds = [typing.get_origin(option) or option for option in options]
    wanted: tuple[type[Any], ...] = ()
    if isinstance(value, Mapping):
        wanted = (Mapping,) if Mapping in kinds else (Record,)
    elif isinstance(value, (list, tuple)):
        wanted = (tuple,)
    for option, kind in zip(options, kinds, strict=True):
        if isinstance(kind, type) and issubclass(kind, wanted):
            return option
    return options[-1]


def _convert_tuple(
    value: Any, args: tuple[Any, ...], path: FieldPath, mistakes: list[Mistake]
) -> Any:
    if not isinstance(value, (list, tuple)):
        is_one = isinstance(value, (str, int, float))
        advice = "put it in [ ]" if is_one else "each item of a list begins with '- '"
        return _add_mistake(mistakes, path, "a list", value, advice)
    if len(args) == 2 and args[1] is ...:
        args = (args[0],) * len(value)
    if len(value) != len(args):
        return _add_mistake(mistakes, path, f"a list of {len(args)}", value)
    items = []
    for index, (item, arg) in enumerate(zip(value, args, strict=True)):
        before = len(mistakes)
        converted = convert_value(item, arg, (*path, index), mistakes)
        # An item that can't be read is kept, so that the indexes of later items stay right.
        is_unread = converted is None and len(mistakes) > before
        items.append(_make_empty_value(arg) if is_unread else converted)
    return tuple(items)


def _convert_mapping(
    value: Any, args: tuple[Any, ...], path: FieldPath, mistakes: list[Mistake]
) -> Any:
    if not isinstance(value, Mapping):
        return _add_mistake(mistakes, path, "a mapping", value)
    mapping: dict[str, Any] = {}
    for key, item in value.items():
        name = key_text(key)
        if name in mapping:
            mistakes.append(Mistake((*path, name), DUPLICATE_KEY))
        mapping[name] = convert_value(item, args[1], (*path, name), mistakes)
    return mapping


def _convert_enum(value: Any, hint: type[Enum], path: FieldPath, mistakes: list[Mistake]) -> Any:
    if isinstance(value, hint):
        return value
    members = [str(member.value) for member in hint]
    if isinstance(value, str) and value in members:
        return hint(value)
    message = f"expected one of {', '.join(members)}; got {describe_value(value)}"
    advice = did_you_mean(value, members) if isinstance(value, str) else ""
    mistakes.append(Mistake(path, message, advice if advice.startswith("did") else ""))
    return None


def _convert_scalar(value: Any, hint: Any, path: FieldPath, mistakes: list[Mistake]) -> Any:
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is float and is_number:
        try:
            return _convert_plain(float(value), path, mistakes)
        except OverflowError:
            return _add_mistake(mistakes, path, "a number up to 1e308", value)
    if (
        hint is int
        and is_number
        and isinstance(value, int)
        and value.bit_length() < MAX_INTEGER_BITS
    ):
        return int(value)
    if hint in (str, bool) and isinstance(value, hint):
        return str(value) if hint is str else value
    advice = ""
    if hint is str and isinstance(value, bool):
        advice = f'put it in quotes: "{describe_value(value)}"'
    elif hint is str and is_number:
        advice = "put it in quotes"
    elif hint in (int, float) and isinstance(value, str):
        alone = "without quotes" if re.fullmatch(r"[-+.\deE]+", value) else "without a unit"
        advice = f"a number stands {alone}" if re.search(r"\d", value) else ""
    return _add_mistake(mistakes, path, names.get(hint, str(hint)), value, advice)


def _add_mistake(
    mistakes: list[Mistake], path: FieldPath, expected: str, value: Any, advice: str = ""
) -> None:
    mistakes.append(Mistake(path, f"expected {expected}, got {describe_value(value)}", advice))


def describe_value(value: Any) -> str:
    """Describe a value in a message: its kind and, if it is short, the value itself."""
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


def _list_main_fields(cls: type[Any]) -> str:
    fields = list(required_fields(cls)) or list(field_types(cls))[:3]
    names = [_file_key(cls, name) for name in fields]
    return ", ".join(names) + ", ..."


def dump_record(value: Any) -> Any:
    """Convert a record (or a tuple or mapping of them) to plain data for `build_record`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        cls = type(value)
        return {
            _file_key(cls, name): dump_record(getattr(value, name))
            for name in fields_to_dump(value)
        }
    if isinstance(value, tuple):
        return [dump_record(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): dump_record(item) for key, item in value.items()}
    return to_plain(value)

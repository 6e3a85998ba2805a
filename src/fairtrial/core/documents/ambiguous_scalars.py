"""Detection of unquoted YAML values that are read as something else than they look.

PyYAML follows YAML 1.1: `no` is false, `010` is 8, `12:30` is 750, and `1e3` is text. Quoted values
are not affected.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from fairtrial.core.documents.nodes import Scalar
from fairtrial.core.errors import FieldPath
from fairtrial.core.scalars import scalar_text

# Numbers by YAML 1.2, and to a human reader.
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")

_MAX_CHARS = 40
"""Longer texts are not mistaken for numbers or words like `no`."""


@dataclass(frozen=True, slots=True)
class AmbiguousScalar:
    """The reading of an ambiguous value, and how to write either meaning.

    message: says what the value is read as
    keep: how to write the value it is read as
    change: how to write the value it looks like
    is_null: whether it is read as null
    is_misread: whether it looks like a number but is read as another number or as text
    """

    message: str
    keep: str
    change: str
    is_null: bool = False
    is_misread: bool = False

    @property
    def hint(self) -> str:
        """Advice on how to write either meaning."""
        return f"write {self.change}, or {self.keep}"


def looks_like_number(text: str) -> bool:
    """Return whether YAML 1.2, and a human reader, take the text for a number."""
    return _NUMBER.fullmatch(text) is not None


def find_ambiguity(node: Scalar) -> AmbiguousScalar | None:
    """Return how a scalar is ambiguous; None if it isn't."""
    text, value = node.text, node.value
    if not node.is_plain or node.problem or len(text) > _MAX_CHARS:
        return None
    quoted = f"'{text}' in quotes for the text"
    if isinstance(value, str):
        number = _format_number(text) if looks_like_number(text) else None
        if number is None:
            return None
        message = f"`{text}` is read as text, not as a number"
        return AmbiguousScalar(message, quoted, f"{number} for the number", is_misread=True)
    if value is None:
        keep = "{name: none, value: null} for null" if text == "null" else "null if that is meant"
        if not text:
            return AmbiguousScalar(
                "nothing stands here, which is read as null", keep, "a value", True
            )
        return AmbiguousScalar(f"`{text}` is read as null", keep, quoted, is_null=True)
    read_as = scalar_text(value)
    message, keep = f"`{text}` is read as {read_as}", f"{read_as} if that is meant"
    if isinstance(value, bool):
        return AmbiguousScalar(message, keep, quoted) if text.lower() != read_as else None
    if ":" in text:
        return AmbiguousScalar(f"{message} (base 60)", keep, quoted, is_misread=True)
    if re.fullmatch(r"[-+]?0[0-7_]+", text):
        if value:
            decimal = int(text.replace("_", ""))
            keep = f"whichever of {value} and {decimal} is meant"
        return AmbiguousScalar(f"{message} (base 8)", keep, quoted, is_misread=True)
    return AmbiguousScalar(message, keep, quoted) if "_" in text else None


def _format_number(text: str) -> str | None:
    """Format the number that a text looks like for YAML 1.1; None if it is not finite."""
    if text.startswith("0o"):
        return str(int(text, 0))
    if not re.search("[.eE]", text):
        return str(int(text))
    number = float(text)
    if not math.isfinite(number):
        return None
    if number.is_integer() and abs(number) < 1e15:
        return f"{int(number)} (or {number})"
    spelled = repr(number)
    return spelled if "." in spelled else spelled.replace("e", ".0e")


def needs_warning(ambiguity: AmbiguousScalar, text: str, path: FieldPath) -> bool:
    """Return whether an ambiguous value deserves a warning at its path.

    Any ambiguity matters in levels, since a level may be of any type. Elsewhere types are checked,
    and only misread numbers would go unnoticed. A literal `null` needs a warning only as a whole
    level; an explicit `value: null` is clear.
    """
    if ambiguity.is_misread:
        return True
    match path:
        case ("factors", _, "levels", _):
            return True
        case (
            ("factors", _, "levels", _, "name" | "value", *_)
            | ("factors", _, "default", *_)
            | ("blocks", _, "levels", *_)
        ):
            return text != "null"
    return False

"""Plain YAML values that are read as something else than they look.

YAML 1.1, which PyYAML reads, takes `no` for false, `010` for 8 and `12:30` for 750, but `1e3` for a
text. In quotes nothing of that happens.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from fairtrial.core.documents.nodes import Scalar
from fairtrial.core.errors import Place
from fairtrial.core.scalars import scalar_text

# Numbers by YAML 1.2 and to the eye.
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")

_LONGEST = 40
"""Nobody takes a longer word for a number at a glance."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """What a value is read as, and how to write either meaning.

    message: what it is read as
    keep: how to write that
    change: how to write what it looks like
    is_null: whether it is read as null
    is_misread: whether it is a number to the eye and another number, or none, to YAML
    """

    message: str
    keep: str
    change: str
    is_null: bool = False
    is_misread: bool = False

    @property
    def hint(self) -> str:
        """How to write the one or the other."""
        return f"write {self.change}, or {self.keep}"


def looks_like_number(text: str) -> bool:
    """Whether a person, or YAML 1.2, takes the text for a number."""
    return _NUMBER.fullmatch(text) is not None


def surprise_of(node: Scalar) -> Surprise | None:
    """What is unexpected about a value; None for nearly all of them."""
    text, value = node.text, node.value
    if not node.is_plain or node.problem or len(text) > _LONGEST:
        return None
    quoted = f"'{text}' in quotes for the text"
    if isinstance(value, str):
        number = _spell_number(text) if looks_like_number(text) else None
        if number is None:
            return None
        message = f"`{text}` is read as text, not as a number"
        return Surprise(message, quoted, f"{number} for the number", is_misread=True)
    if value is None:
        keep = "{name: none, value: null} for null" if text == "null" else "null if that is meant"
        if not text:
            return Surprise("nothing stands here, which is read as null", keep, "a value", True)
        return Surprise(f"`{text}` is read as null", keep, quoted, is_null=True)
    read_as = scalar_text(value)
    message, keep = f"`{text}` is read as {read_as}", f"{read_as} if that is meant"
    if isinstance(value, bool):
        return Surprise(message, keep, quoted) if text.lower() != read_as else None
    if ":" in text:
        return Surprise(f"{message} (base 60)", keep, quoted, is_misread=True)
    if re.fullmatch(r"[-+]?0[0-7_]+", text):
        if value:
            decimal = int(text.replace("_", ""))
            keep = f"whichever of {value} and {decimal} is meant"
        return Surprise(f"{message} (base 8)", keep, quoted, is_misread=True)
    return Surprise(message, keep, quoted) if "_" in text else None


def _spell_number(text: str) -> str | None:
    """The number that a text looks like, as YAML 1.1 reads it; None if there is no such number."""
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


def is_worth_a_warning(surprise: Surprise, text: str, path: Place) -> bool:
    """Whether a surprise matters where it stands.

    Levels matter most: any of them may be meant as text. Elsewhere types are checked, and only a
    number that isn't the one on paper would pass unseen. `null` by its own name is worth a warning
    only where it names a level, too; an explicit `value: null` is clear.
    """
    if surprise.is_misread:
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

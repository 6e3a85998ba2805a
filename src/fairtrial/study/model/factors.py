"""What a study varies: factors and their levels, blocks, constraints, and the design over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from fairtrial.core import (
    Mistake,
    Place,
    Record,
    blank,
    describe,
    is_scalar,
    same_text,
    scalar_text,
)


class FactorKind(StrEnum):
    """The part a factor plays."""

    MANIPULATED = "manipulated"
    MEASURED = "measured"
    BLOCKED = "blocked"
    NUISANCE = "nuisance"


class ConstraintSeverity(StrEnum):
    """What it means to break a constraint."""

    ERROR = "error"
    WARNING = "warning"


class DesignKind(StrEnum):
    """The designs that come with fairtrial; plug-ins add others by name."""

    FULL_FACTORIAL = "full_factorial"
    CONSTRAINED_FACTORIAL = "constrained_factorial"
    RANDOMIZED_BLOCK = "randomized_block"
    REPEATED_MEASURES = "repeated_measures"
    LATIN_SQUARE = "latin_square"
    CUSTOM_MATRIX = "custom_matrix"
    LATIN_HYPERCUBE = "latin_hypercube"
    FRACTIONAL_FACTORIAL_2LEVEL = "fractional_factorial_2level"
    SOBOL = "sobol"
    HALTON = "halton"
    PLACKETT_BURMAN = "plackett_burman"
    CENTRAL_COMPOSITE = "central_composite"
    BOX_BEHNKEN = "box_behnken"
    D_OPTIMAL = "d_optimal"


DESIGN_ALIASES = {
    "full": DesignKind.FULL_FACTORIAL,
    "lhs": DesignKind.LATIN_HYPERCUBE,
    "frac2": DesignKind.FRACTIONAL_FACTORIAL_2LEVEL,
    "pb": DesignKind.PLACKETT_BURMAN,
    "ccd": DesignKind.CENTRAL_COMPOSITE,
    "bbd": DesignKind.BOX_BEHNKEN,
}

MOST_CONDITIONS = 10_000_000
"""What `max_conditions` may be raised to: no machine holds many more."""
MOVED_OPTIONS = ("n_samples", "matrix_path", "block_randomization_key", "center_points")
"""What older files keep among a design's options, and is a field of `DesignSpec` now."""


@dataclass(frozen=True, slots=True)
class Level(Record):
    """One value that a factor takes. In files a bare value is short for a level of that name.

    name: what reports call it
    value: what agents and problems get
    label: a longer name, for plots
    metadata: anything else; `is_baseline: true` marks the level that others are compared with
    when: an expression over the factors listed earlier; the level exists only where it holds
    """

    name: str
    value: Any
    label: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    when: str | None = None

    @classmethod
    def _short_form(cls, value: Any) -> Mapping[str, Any] | None:
        return {"name": scalar_text(value), "value": value} if is_scalar(value) else None

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: Place, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        if isinstance(data.get("name"), (bool, int, float)):
            data["name"] = scalar_text(data["name"])
        return data

    def _derive(self) -> None:
        if self.label is None:
            self._set("label", self.name)

    def _mistakes(self) -> Iterator[Mistake]:
        return blank(name=self.name)


@dataclass(frozen=True, slots=True)
class Factor(Record):
    """Something that the study varies.

    name: its column in every table
    description: what it is
    kind: the part it plays
    levels: the values it takes, in order
    dtype: the type of its values (str, int, float, bool), for matrix files and tables
    default: its value where it has no levels, or where `when` does not hold
    metadata: anything else
    tied_to: the factor that it moves in step with, level by level
    when: an expression over the factors listed earlier; elsewhere the factor holds its default
    """

    name: str
    description: str = ""
    kind: FactorKind = FactorKind.MANIPULATED
    levels: tuple[Level, ...] = ()
    dtype: str | None = None
    default: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tied_to: str | None = None
    when: str | None = None

    if TYPE_CHECKING:  # what `Record` takes: bare values become levels, text a kind

        def __init__(
            self,
            name: str,
            description: str = "",
            kind: FactorKind | str = FactorKind.MANIPULATED,
            levels: Sequence[Level | str | float | None] = (),
            dtype: str | None = None,
            default: Any = None,
            metadata: Mapping[str, Any] = ...,
            tied_to: str | None = None,
            when: str | None = None,
        ) -> None: ...

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(name=self.name)
        if not self.levels and self.default is None:
            yield Mistake(("levels",), "must hold at least one level", "or give a default")
        names: dict[str, int] = {}
        for index, level in enumerate(self.levels):
            if level.name in names:
                yield Mistake(
                    ("levels", index, "name"), f"'{level.name}' is the name of an earlier level too"
                )
            names.setdefault(level.name, index)
        for first, second in same_text([level.value for level in self.levels]):
            if self.levels[first].name != self.levels[second].name:
                yield Mistake(
                    ("levels", second, "value"),
                    f"level '{self.levels[second].name}' has the value of level "
                    f"'{self.levels[first].name}': two conditions would get one id",
                    "give it another value",
                )
        known = ("str", "int", "float", "bool")
        if self.dtype is not None and self.dtype not in known:
            yield Mistake(("dtype",), f"expected one of {', '.join(known)}; got '{self.dtype}'")

    def iter_values(self) -> tuple[Any, ...]:
        """The values it takes, in order; the default alone where it has no levels."""
        return tuple(level.value for level in self.levels) if self.levels else (self.default,)


@dataclass(frozen=True, slots=True)
class Block(Record):
    """A circumstance that runs are grouped by, to keep it out of the comparison.

    name: its column is `block_<name>` in every table; a block named `subject` marks who is measured
        repeatedly
    levels: the groups
    metadata: anything else
    """

    name: str
    levels: tuple[Any, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(name=self.name)
        if not self.levels:
            yield Mistake(("levels",), "must hold at least one level")
        for first, second in same_text(self.levels):
            yield Mistake(("levels", second), f"is the same as level {first + 1} of the block")


@dataclass(frozen=True, slots=True)
class Constraint(Record):
    """A rule that conditions must keep; those that break it stay in the table and never run.

    constraint_id: a name that messages use
    description: what the rule is for
    expression: the rule, over factor and block names: `not (model == "tiny" and depth > 2)`
    callable_ref: or a function, `module:name`, that gets (factors, blocks) and returns true or
        false
    severity: `error` keeps a condition from running, `warning` only says so
    """

    constraint_id: str
    description: str = ""
    expression: str | None = None
    callable_ref: str | None = None
    severity: ConstraintSeverity = ConstraintSeverity.ERROR

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(constraint_id=self.constraint_id)
        if self.expression is None and self.callable_ref is None:
            yield Mistake((), "needs an `expression` or a `callable_ref`")
        if self.callable_ref is not None and not all(self.callable_ref.partition(":")):
            yield Mistake(
                ("callable_ref",), f"expected module:function, got {describe(self.callable_ref)}"
            )


@dataclass(frozen=True, slots=True)
class DesignSpec(Record):
    """Which conditions to make of the factors, and how.

    kind: the design; `fairtrial doe --help` lists them
    replicates: how often its rows are repeated; for designs without rows of their own it
        multiplies `run_budget.replicates`
    randomize: whether the rows are put in a seeded random order
    counterbalance: whether neighbours in the list are spread apart
    matrix_path: the CSV or JSON file of a custom matrix, relative to the study file
    n_samples: the number of rows, for designs that ask for one
    center_points: rows at the centre of all numeric factors, added at the end
    block_randomization_key: the factor within whose values rows are shuffled
    options: what the design itself understands
    max_conditions: more conditions than this are refused before they are made
    """

    kind: DesignKind | str = DesignKind.FULL_FACTORIAL
    replicates: int = 1
    randomize: bool = False
    counterbalance: bool = False
    matrix_path: str | None = None
    n_samples: int | None = None
    center_points: int = 0
    block_randomization_key: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    max_conditions: int = 100_000

    def _derive(self) -> None:
        if not isinstance(self.kind, DesignKind):
            name = self.kind.strip().lower()
            name = DESIGN_ALIASES.get(name, name)
            known = name in DesignKind._value2member_map_
            self._set("kind", DesignKind(name) if known else self.kind.strip())
        # Older files keep these among the options, or in both places; the field itself counts.
        options = dict(self.options)
        for name in MOVED_OPTIONS:
            if name in options:
                value = options.pop(name)
                if value is not None and not getattr(self, name):
                    self._set(name, value)
        self._set("options", options)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(kind=str(self.kind))
        at_least = {"replicates": 1, "n_samples": 1, "center_points": 0, "max_conditions": 1}
        for name, least in at_least.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < least):
                yield Mistake((name,), f"must be {least} or more, got {value}")
        if self.max_conditions > MOST_CONDITIONS:
            yield Mistake(("max_conditions",), f"must be {MOST_CONDITIONS:,} or less")
        for name in ("matrix_path", "block_randomization_key"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                yield Mistake((name,), f"expected text, got {describe(value)}")

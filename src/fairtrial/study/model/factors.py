"""Records of a study's design: factors and levels, blocks, constraints, and the design spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from fairtrial.core import (
    FieldPath,
    Mistake,
    Record,
    canonical,
    describe_value,
    is_scalar,
    scalar_text,
)


class FactorKind(StrEnum):
    """The role of a factor in the study."""

    MANIPULATED = "manipulated"
    MEASURED = "measured"
    BLOCKED = "blocked"
    NUISANCE = "nuisance"


class ConstraintSeverity(StrEnum):
    """What happens to a condition that breaks a constraint."""

    ERROR = "error"
    WARNING = "warning"


class DesignKind(StrEnum):
    """The built-in designs; plug-ins add others by name."""

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

MAX_CONDITIONS = 10_000_000
"""The largest value of `DesignSpec.max_conditions`: more conditions don't fit into memory."""
MOVED_OPTIONS = ("n_samples", "matrix_path", "block_randomization_key", "center_points")
"""Fields of `DesignSpec` that older files have among the design's options."""
VALUE_TYPES = ("str", "int", "float", "bool")
"""The values of `Factor.dtype`."""


@dataclass(frozen=True, slots=True)
class Level(Record):
    """One level of a factor. In files a bare value is short for a level with that value and name.

    name: the level's name in reports
    value: the value that agents and problems receive
    label: a longer name, for plots
    metadata: any further data; `is_baseline: true` marks the level that others are compared with
    when: an expression over the factors listed earlier; the level exists only where it is true
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
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        if isinstance(data.get("name"), (bool, int, float)):
            data["name"] = scalar_text(data["name"])
        return data

    def _derive(self) -> None:
        if self.label is None:
            self._set("label", self.name)

    def _mistakes(self) -> Iterator[Mistake]:
        return self._blank_mistakes("name")


@dataclass(frozen=True, slots=True)
class Factor(Record):
    """A variable that the study sets: its name and its levels.

    name: the factor's name, and its column in every table
    description: what the factor is
    kind: its role in the study
    levels: the values it takes, in order
    dtype: the type of its values (str, int, float, bool), for matrix files and tables
    default: its value if it has no levels, or where `when` is false
    metadata: any further data
    tied_to: a factor with as many levels; the two change together, level by level
    when: an expression over the factors listed earlier; if it is false the factor has its default
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

    if TYPE_CHECKING:  # `Record` also accepts bare values as levels, and text as the kind

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
        yield from self._blank_mistakes("name")
        if not self.levels and self.default is None:
            yield Mistake(("levels",), "must hold at least one level", "or give a default")
        names: dict[str, int] = {}
        for index, level in enumerate(self.levels):
            if level.name in names:
                yield Mistake(
                    ("levels", index, "name"), f"'{level.name}' is the name of an earlier level too"
                )
            names.setdefault(level.name, index)
        for first, second in canonical.find_equal_values([level.value for level in self.levels]):
            if self.levels[first].name != self.levels[second].name:
                yield Mistake(
                    ("levels", second, "value"),
                    f"level '{self.levels[second].name}' has the value of level "
                    f"'{self.levels[first].name}': two conditions would get one id",
                    "give it another value",
                )
        if self.dtype is not None and self.dtype not in VALUE_TYPES:
            expected = ", ".join(VALUE_TYPES)
            yield Mistake(("dtype",), f"expected one of {expected}; got '{self.dtype}'")

    def iter_values(self) -> tuple[Any, ...]:
        """Return the values of the levels, in order; only the default if there are no levels."""
        return tuple(level.value for level in self.levels) if self.levels else (self.default,)


@dataclass(frozen=True, slots=True)
class Block(Record):
    """A blocking variable: runs are grouped by it, so that its effect doesn't bias comparisons.

    name: the block's name; its column in every table is `block_<name>`. The levels of a block named
        `subject` are the subjects of repeated measures
    levels: the groups
    metadata: any further data
    """

    name: str
    levels: tuple[Any, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("name")
        if not self.levels:
            yield Mistake(("levels",), "must hold at least one level")
        for first, second in canonical.find_equal_values(self.levels):
            yield Mistake(("levels", second), f"is the same as level {first + 1} of the block")


@dataclass(frozen=True, slots=True)
class Constraint(Record):
    """A rule for conditions; those that break it stay in the table of conditions and never run.

    constraint_id: a name, used in messages
    description: what the rule is for
    expression: the rule, over factor and block names: `not (model == "tiny" and depth > 2)`
    callable_ref: a function in place of an expression, `module:name`, that takes (factors, blocks)
        and returns true or false
    severity: `error` excludes conditions that break the rule, `warning` only reports them
    """

    constraint_id: str
    description: str = ""
    expression: str | None = None
    callable_ref: str | None = None
    severity: ConstraintSeverity = ConstraintSeverity.ERROR

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("constraint_id")
        if self.expression is None and self.callable_ref is None:
            yield Mistake((), "needs an `expression` or a `callable_ref`")
        if self.callable_ref is not None and not all(self.callable_ref.partition(":")):
            yield Mistake(
                ("callable_ref",),
                f"expected module:function, got {describe_value(self.callable_ref)}",
            )


@dataclass(frozen=True, slots=True)
class DesignSpec(Record):
    """The design: which conditions are generated from the factors, and in which order.

    kind: the name of the design; `fairtrial doe --help` lists the designs
    replicates: how often the design's rows are repeated; for designs that take every combination of
        levels it multiplies `run_budget.replicates`
    randomize: whether the rows are put into a seeded random order
    counterbalance: whether rows that are next to each other are moved apart
    matrix_path: the CSV or JSON file of a custom matrix, relative to the study file
    n_samples: the number of rows, for designs that sample or select rows
    center_points: the number of rows at the center of all numeric factors, added at the end
    block_randomization_key: a factor; rows are shuffled only among those with the same value of it
    options: options of the design itself
    max_conditions: a design with more conditions than this is refused before they are generated
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
            is_builtin = name in DesignKind._value2member_map_
            self._set("kind", DesignKind(name) if is_builtin else self.kind.strip())
        # Older files have these among the options, or in both places; the field takes precedence.
        options = dict(self.options)
        for name in MOVED_OPTIONS:
            if name in options:
                value = options.pop(name)
                if value is not None and not getattr(self, name):
                    self._set(name, value)
        self._set("options", options)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("kind")
        minima = {"replicates": 1, "n_samples": 1, "center_points": 0, "max_conditions": 1}
        for name, minimum in minima.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < minimum):
                yield Mistake((name,), f"must be {minimum} or more, got {value}")
        if self.max_conditions > MAX_CONDITIONS:
            yield Mistake(("max_conditions",), f"must be {MAX_CONDITIONS:,} or less")
        for name in ("matrix_path", "block_randomization_key"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                yield Mistake((name,), f"expected text, got {describe_value(value)}")

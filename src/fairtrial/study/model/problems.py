"""The problems of a study: bindings of single ones, and datasets of many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

from fairtrial.core import FieldPath, Mistake, Record, describe_value, fields, plain_number
from fairtrial.study.datasets.sources import is_reference
from fairtrial.study.datasets.table import ProblemTable, open_table, stored_table
from fairtrial.study.model.resources import Resources

SPLIT_SEED = "seed"
"""The key of `split` that isn't a part."""
COLUMN_OPTION = "_column"
"""How options of evaluators end that name a column."""


@dataclass(frozen=True, slots=True)
class EvaluatorBinding(Record):
    """An evaluator of outputs. In files a bare text is short for `use`.

    use: an evaluator's name, such as `exact`, or `module:callable`
    name: the name of its metric; by default that of the evaluator
    options: the evaluator's options, or keyword arguments for the callable
    """

    use: str
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    _short_field: ClassVar[str] = "use"

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("use")


EvaluatorField = str | EvaluatorBinding | tuple[EvaluatorBinding, ...] | None


def list_evaluators(value: EvaluatorField) -> tuple[EvaluatorBinding, ...]:
    """Return the evaluators that a field `evaluator` names."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (EvaluatorBinding(value),)
    return (value,) if isinstance(value, EvaluatorBinding) else value


@dataclass(frozen=True, slots=True)
class ProblemBinding(Record):
    """The problem behind a problem's name: a plug-in, or a problem defined in the file.

    use: a plug-in's name, or `module:callable`
    options: the plug-in's options, or keyword arguments for the callable
    family: the group of problems that it belongs to
    brief: the task, as given to the agent
    payload: data for the agent
    metadata: any further data
    evaluator: what scores an output: an evaluator's name, `module:callable`, a mapping with `use`
        and `options`, or a list of these
    resources: what each run on this problem needs of the machine
    reference: the right answer, for evaluators; agents don't see it
    """

    use: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    brief: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    evaluator: str | EvaluatorBinding | tuple[EvaluatorBinding, ...] | None = None
    resources: Resources | None = field(default=None, metadata=fields.ONLY_IF_SET)
    reference: Any = field(default=None, metadata=fields.ONLY_IF_SET)

    _short_field: ClassVar[str] = "use"

    def _mistakes(self) -> Iterator[Mistake]:
        packet = [
            name for name in ("family", "brief", "payload", "evaluator") if getattr(self, name)
        ]
        if self.use is None and not packet:
            yield Mistake((), "needs `use` (a plug-in) or a packet (family, brief, evaluator)")
        if self.use is not None and packet:
            yield Mistake((), f"has both `use` and `{packet[0]}`", "a plug-in takes `options`")
        if self.use is None and self.options:
            yield Mistake(("options",), "are for a plug-in named by `use`")


@dataclass(frozen=True, slots=True)
class RowSample(Record):
    """A random sample of a dataset's rows. In files a bare number is short for `n`.

    n: the number of rows
    stratify: a column; each of its values gets its share of the sample
    seed: another seed draws other rows
    """

    n: int
    stratify: str = ""
    seed: int = 0

    @classmethod
    def _short_form(cls, value: Any) -> Mapping[str, Any] | None:
        return {"n": value} if isinstance(value, int) and not isinstance(value, bool) else None

    def _mistakes(self) -> Iterator[Mistake]:
        if self.n < 1:
            yield Mistake(("n",), f"must be 1 or more, got {self.n}")


@dataclass(frozen=True, slots=True)
class Dataset(Record, Mapping[str, ProblemBinding]):
    """Rows of a file or table as the problems of a study. In files a bare text is short for `from`.

    In files `source` is written `from`. As a mapping it has the names of its problems, with what
    is bound to each.

    source: a file (.jsonl, .csv, .tsv, .json, .parquet), a folder of files, `module:function`,
        `hf:name` for a Hugging Face dataset; in Python also a list or another iterable of mappings
    id: the column with the problems' names; by default names are hashes of the rows
    brief: the instructions for the agent, with columns in braces: `{question}`
    family: the column with the group that a problem belongs to
    reference: the column with the right answer, for evaluators; agents don't see it
    evaluator: what scores an output: an evaluator's name, `module:callable`, a mapping with `use`
        and `options`, or a list of these
    hide: further columns that agents don't see
    where: an expression over columns that rows must fulfill
    split: parts of the rows by name, with their shares, and a `seed`:
        `{train: 0.5, test: 0.5, seed: 1}`
    use: the part that this study uses
    sample: how many of these rows are drawn, and how
    format: the format of the file, if its name doesn't say
    encoding: the encoding of the file; by default UTF-8
    delimiter: what separates the cells of a CSV file; by default a comma, or what its header has
    options: keyword arguments for the function; `pattern` for a folder; for a Hugging Face dataset
        `split`, `name`, `revision` and other arguments of `load_dataset`
    resources: what each run on one of these problems needs of the machine
    rows: the rows themselves, if they were given in Python
    folder: the folder that paths are relative to; that of a study's file is set when it is read
    """

    source: Any
    id: str = ""
    brief: str = ""
    family: str = ""
    reference: str = ""
    evaluator: str | EvaluatorBinding | tuple[EvaluatorBinding, ...] | None = None
    hide: tuple[str, ...] = ()
    where: str = ""
    split: Mapping[str, float] = field(default_factory=dict)
    use: str = ""
    sample: RowSample | None = None
    format: Literal["", "jsonl", "csv", "json", "parquet", "folder"] = ""
    encoding: str = ""
    delimiter: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    resources: Resources | None = field(default=None, metadata=fields.ONLY_IF_SET)
    rows: Any = field(default=None, compare=False, repr=False, metadata=fields.NOT_IN_FILES)
    folder: Path | None = field(
        default=None, compare=False, repr=False, metadata=fields.NOT_IN_FILES
    )
    _table: ProblemTable | None = field(default=None, init=False, compare=False, repr=False)

    _short_field: ClassVar[str] = "source"
    _file_keys: ClassVar[Mapping[str, str]] = {"source": "from"}

    def __post_init__(self) -> None:
        if isinstance(self.source, Path):
            self._set("source", str(self.source))
        elif not isinstance(self.source, (str, Mapping)) and hasattr(self.source, "__iter__"):
            self._set("rows", list(self.source))
            self._set("source", f"<{len(self.rows):,} rows given in Python>")
        Record.__post_init__(self)

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        # Only Python code gives rows; a file names where they are.
        source = data.get("from", "")
        if isinstance(source, str):
            return data
        mistakes.append(Mistake((*path, "from"), f"expected text, got {describe_value(source)}"))
        return {**data, "from": "?"}

    def _mistakes(self) -> Iterator[Mistake]:
        if not isinstance(self.source, str) or not self.source.strip():
            yield Mistake(("from",), "must name a file, a folder, module:function or hf:dataset")
        parts = self.parts
        if self.use and self.use not in parts:
            known = f"its parts are {', '.join(parts)}" if parts else "there is no `split`"
            yield Mistake(("use",), f"'{self.use}' is no part of the dataset", known)
        if parts and not self.use:
            hint = f"use: {next(iter(parts))}"
            yield Mistake(("use",), "is missing: which part of `split` runs", hint)
        for name, share in parts.items():
            if plain_number(share) is None or not 0 < share <= 1:
                yield Mistake(("split", name), f"must be above 0 and at most 1, got {share}")
        if sum(parts.values()) > 1 + 1e-9:
            yield Mistake(("split",), f"the parts add up to {sum(parts.values()):g}, above 1")
        if len(self.delimiter) > 1:
            yield Mistake(("delimiter",), "must be one character")

    @property
    def parts(self) -> dict[str, float]:
        """The parts of `split` with their shares."""
        return {name: share for name, share in self.split.items() if name != SPLIT_SEED}

    def hidden_columns(self) -> tuple[str, ...]:
        """Return the columns that options of evaluators name; agents don't see them."""
        return tuple(
            str(value)
            for evaluator in list_evaluators(self.evaluator)
            for name, value in evaluator.options.items()
            if name.endswith(COLUMN_OPTION) and value
        )

    @property
    def table(self) -> ProblemTable:
        """The problems; the source is read when they are first asked for.

        If it can't be read there are none, and `table.mistakes` says why.
        """
        if self._table is None:
            self._set("_table", open_table(self))
        assert self._table is not None
        return self._table

    def dump_names(self) -> dict[str, Any]:
        """Return the problems' names and what identifies their data, for a ledger."""
        return {"names": list(self.table.names), "facts": dict(self.table.facts)}

    def use_stored(self, dumped: Mapping[str, Any]) -> None:
        """Take the problems' names as `dump_names` gave them, rather than from the source."""
        self._set("_table", stored_table(tuple(dumped["names"]), dumped["facts"]))

    def reopened(self) -> Dataset:
        """Return the dataset as its source is now."""
        data = {name: getattr(self, name) for name in fields.field_types(Dataset)}
        fresh = Dataset(**data)
        fresh._set("rows", self.rows)
        fresh._set("folder", self.folder)
        return fresh

    def __reduce__(self) -> tuple[Any, ...]:
        data = {name: getattr(self, name) for name in fields.field_types(Dataset)}
        return _restore, (data, self.rows, self.folder)

    def __getitem__(self, name: str) -> ProblemBinding:
        if name not in self.table.positions:
            raise KeyError(name)
        return ProblemBinding(
            brief=self.brief or name, evaluator=self.evaluator, resources=self.resources
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.names)

    def __len__(self) -> int:
        return len(self.table.names)

    def __contains__(self, name: object) -> bool:
        return name in self.table.positions

    def __repr__(self) -> str:
        return f"Dataset({self.source!r})"

    def first_names(self, count: int) -> list[str]:
        """Return the names of the first problems."""
        return list(islice(self, count))


def _restore(data: Mapping[str, Any], rows: Any, folder: Path | None) -> Dataset:
    dataset = Dataset(**data)
    dataset._set("rows", rows)
    dataset._set("folder", folder)
    return dataset


def named_code(problems: Mapping[str, ProblemBinding]) -> list[str]:
    """Return what problems name of the user's code: each `module:callable`."""
    uses: dict[str, None] = {}
    if isinstance(problems, Dataset):
        uses |= dict.fromkeys(item.use for item in list_evaluators(problems.evaluator))
        if is_reference(problems.source):
            uses[problems.source] = None
    else:
        for problem in problems.values():
            names = [problem.use or "", *(item.use for item in list_evaluators(problem.evaluator))]
            uses |= dict.fromkeys(names)
    return [use for use in uses if ":" in use]

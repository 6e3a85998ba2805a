"""Open the source of a dataset: a file, a folder, a Python function, or tasks of other tools."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.core import FairtrialError, Mistake, StudyError, did_you_mean, plugins, table_files
from fairtrial.study.datasets import harbor_tasks, inspect_tasks
from fairtrial.study.datasets.rows import MemoryRows, Row, Rows
from fairtrial.study.datasets.text_files import CsvRows, JsonLines, TextFile, unreadable

if TYPE_CHECKING:
    from fairtrial.study.model.problems import Dataset

HUGGING_FACE, INSPECT, HARBOR = "hf:", "inspect:", "harbor:"
SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".parquet": "parquet",
}
_FOLDER_OPTIONS = ("pattern",)


def open_rows(dataset: Dataset) -> Rows:
    """Return the rows of a dataset's source; raises `StudyError` if it can't be read."""
    if dataset.rows is not None:
        return MemoryRows(dataset.rows)
    source = str(dataset.source)
    if source.startswith("<"):
        hint = "run it from Python, with the same Dataset(rows, ...)"
        raise StudyError(Mistake(("from",), "the rows were given in Python", hint))
    if source.startswith(HUGGING_FACE):
        return _open_hugging_face(source.removeprefix(HUGGING_FACE), dataset)
    if source.startswith(INSPECT):
        return _read_inspect_task(source.removeprefix(INSPECT), dataset)
    if source.startswith(HARBOR):
        _refuse_options(dataset, ())
        rows = harbor_tasks.task_rows(source.removeprefix(HARBOR), dataset.folder or Path())
        return MemoryRows(rows)
    path = (dataset.folder or Path()).absolute() / Path(source).expanduser()
    if not path.exists() and is_reference(source):
        return _call_function(source, dataset)
    format = dataset.format or ("folder" if path.is_dir() else SUFFIXES.get(path.suffix.lower()))
    if format is None:
        if not path.exists():
            raise unreadable(path, FileNotFoundError())
        message = f"can't tell the format of {path} from the ending '{path.suffix}'"
        hint = f"name it: `format: csv`; endings known: {', '.join(SUFFIXES)}"
        raise StudyError(Mistake(("from",), message, hint))
    _refuse_options(dataset, _FOLDER_OPTIONS if format == "folder" else ())
    if format == "jsonl":
        return JsonLines(path, dataset.encoding)
    if format == "csv":
        return CsvRows(path, dataset.encoding, dataset.delimiter)
    if format == "json":
        return _read_json(path, dataset.encoding)
    if format == "parquet":
        return _read_parquet(path)
    return FolderRows(path, str(dataset.options.get("pattern", "**/*")), dataset.encoding)


def is_reference(source: str) -> bool:
    module, colon, name = source.partition(":")
    return bool(colon) and all(part.isidentifier() for part in [*module.split("."), name])


def _refuse_options(dataset: Dataset, known: tuple[str, ...]) -> None:
    for name in dataset.options:
        if name not in known:
            raise StudyError(
                Mistake(("options", name), "unknown option", did_you_mean(name, known))
            )


def _call_function(reference: str, dataset: Dataset) -> Rows:
    try:
        made = plugins.load_reference(reference, dataset.folder)(**dataset.options)
        return MemoryRows(made if isinstance(made, (list, tuple)) else list(made))
    except FairtrialError as error:
        mistakes = getattr(error, "mistakes", (Mistake((), str(error)),))
        moved = [Mistake(("from",), mistake.message, mistake.hint) for mistake in mistakes]
        raise StudyError(moved) from error
    except Exception as error:
        message = f"{reference} made no rows: {type(error).__name__}: {error}"
        raise StudyError(Mistake(("from",), message, "it returns mappings, one a row")) from error


def _read_inspect_task(reference: str, dataset: Dataset) -> Rows:
    try:
        task = inspect_tasks.load_task(reference, dataset.options, dataset.folder)
    except StudyError as error:
        moved = [Mistake(("from",), mistake.message, mistake.hint) for mistake in error.mistakes]
        raise StudyError(moved) from error
    return MemoryRows(inspect_tasks.task_rows(task))


def _read_json(path: Path, encoding: str) -> Rows:
    file = TextFile(path, encoding)
    try:
        data = json.loads("".join(line for _, line in file.lines()))
    except (ValueError, RecursionError) as error:
        hint = "a file with one mapping a line ends in .jsonl"
        raise StudyError(Mistake(("from",), f"{path} is not JSON: {error}", hint)) from None
    if isinstance(data, Mapping):
        lists = [name for name, value in data.items() if isinstance(value, list)]
        hint = f"write the list under {', '.join(lists)} to a file of its own" if lists else ""
        raise StudyError(Mistake(("from",), f"{path} holds a mapping, not a list of rows", hint))
    if not isinstance(data, list):
        raise StudyError(Mistake(("from",), f"{path} doesn't hold a list of rows"))
    return MemoryRows(data, file.digest)


class ArrowRows(Rows):
    """Rows of a table of pyarrow, which is columns in memory or in a mapped file."""

    def __init__(self, table: Any, digest: str) -> None:
        self._table, self.digest = table, digest
        self.columns = list(table.column_names)

    def __len__(self) -> int:
        length: int = self._table.num_rows
        return length

    def row(self, number: int) -> Row:
        """Return a row."""
        rows: list[Row] = self._table.slice(number, 1).to_pylist()
        return rows[0]

    def scan(self) -> Iterator[tuple[Row, Row]]:
        """Yield all rows in order."""
        for batch in self._table.to_batches(max_chunksize=1_000):
            for row in batch.to_pylist():
                yield row, row


def _read_parquet(path: Path) -> Rows:
    table_files.require_pyarrow()
    from pyarrow import ArrowException, parquet

    digest = hash_file(path)
    try:
        return ArrowRows(parquet.read_table(path), digest)
    except (ArrowException, OSError) as error:
        raise StudyError(Mistake(("from",), f"{path} is no Parquet file: {error}")) from None


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file; raises `StudyError` if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from None


class FolderRows(Rows):
    """Each file of a folder as a row: `file` (its path), `name`, `folder` and `text`."""

    columns = ("file", "name", "folder", "text")

    def __init__(self, path: Path, pattern: str, encoding: str) -> None:
        self._path, self._encoding = path, encoding or "utf-8-sig"
        try:
            dataset = sorted(path.glob(pattern))
        except (ValueError, NotImplementedError) as error:
            raise StudyError(Mistake(("options", "pattern"), str(error))) from None
        self._files = [item for item in dataset if item.is_file() and not self._is_hidden(item)]
        digest = hashlib.sha256()
        self._digests = [hash_file(item) for item in self._files]
        for item, own in zip(self._files, self._digests, strict=True):
            digest.update(f"{item.relative_to(path).as_posix()}\0{own}\n".encode())
        self.digest = digest.hexdigest()

    def _is_hidden(self, file: Path) -> bool:
        return any(part.startswith(".") for part in file.relative_to(self._path).parts)

    def __len__(self) -> int:
        return len(self._files)

    def row(self, number: int) -> Row:
        """Return a file's row, with its text."""
        file = self._files[number]
        try:
            text = file.read_bytes().decode(self._encoding)
        except (OSError, ValueError, LookupError) as error:
            hint = "name the encoding of the files, or select others with `options: {pattern: ...}`"
            raise StudyError(Mistake(("from",), f"{file} can't be read: {error}", hint)) from None
        relative = file.relative_to(self._path)
        folder = relative.parent.as_posix()
        return {
            "file": relative.as_posix(),
            "name": relative.stem,
            "folder": "" if folder == "." else folder,
            "text": text,
        }

    def place(self, number: int) -> str:
        """Return the file of a row."""
        return f"file {self._files[number].relative_to(self._path)}"


def _open_hugging_face(name: str, dataset: Dataset) -> Rows:
    """Return a dataset of the library `datasets`: one saved to a folder, or one of its hub.

    The library's own cache and environment (`HF_HUB_OFFLINE`, `HF_DATASETS_OFFLINE`) count.
    """
    try:
        import datasets as library
    except ImportError:
        hint = 'pip install "fairtrial[datasets]"'
        raise StudyError(Mistake(("from",), "this source needs `datasets`", hint)) from None
    folder = (dataset.folder or Path()).absolute() / name
    options = dict(dataset.options)
    part = options.pop("split", None)
    try:
        if (folder / "dataset_info.json").exists() or (folder / "dataset_dict.json").exists():
            loaded = library.load_from_disk(os.fspath(folder), **options)
        else:
            loaded = library.load_dataset(name, **options)
    except Exception as error:  # whatever the library and its parts raise
        message = f"'{name}' can't be loaded: {type(error).__name__}: {error}"
        raise StudyError(Mistake(("from",), message)) from error
    if isinstance(loaded, Mapping):
        names = list(loaded)
        if part is None and len(names) == 1:
            part = names[0]
        if part not in names:
            what = "choose one of its parts" if part is None else f"it has no part '{part}'"
            hint = f"`options: {{split: ...}}`; {did_you_mean(str(part or ''), names)}"
            raise StudyError(Mistake(("options", "split"), what, hint))
        loaded = loaded[part]
    return HuggingFaceRows(loaded)


class HuggingFaceRows(Rows):
    """Rows of a dataset of the library `datasets`, which maps its files into memory."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.columns = list(dataset.column_names)
        self.digest = _digest_table(dataset)

    def __len__(self) -> int:
        return len(self._dataset)

    def row(self, number: int) -> Row:
        """Return a row."""
        row: Row = self._dataset[number]
        return row

    def scan(self) -> Iterator[tuple[Row, Row]]:
        """Yield all rows in order."""
        for batch in self._dataset.iter(batch_size=1_000):
            for values in zip(*batch.values(), strict=True):
                row = dict(zip(batch, values, strict=True))
                yield row, row


def _digest_table(dataset: Any) -> str:
    """Return the SHA-256 of a table's content, whichever files it is in."""
    digest = hashlib.sha256(json.dumps(list(dataset.column_names)).encode())
    for batch in dataset.with_format("arrow").iter(batch_size=1_000):
        digest.update(repr(batch.to_pylist()).encode())
    return digest.hexdigest()

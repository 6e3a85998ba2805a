"""Encoding of tables, sparse matrices and tensors of well-known libraries, for `instances`.

They are read by the methods that their libraries define, even if a subclass overrides them. Equal
content is encoded alike, however it is laid out in memory.
"""

from __future__ import annotations

import builtins
from typing import Any, Callable

from .library_values import TAG, Encoded, find_numpy_type

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own

Writer = Callable[[Any, str, Any], Encoded]
"""Encodes an object; called with the encoder, the name of its class, and the object."""
_names = tuple(type.__dict__[part].__get__ for part in ("__module__", "__qualname__"))
_bases = type.__dict__["__mro__"].__get__
_namespace = type.__dict__["__dict__"].__get__


def find_writer(bases: Any) -> Writer | None:
    """Return the writer of the first of these classes that belongs to a known library."""
    for base in bases:
        module, name = (read(base) for read in _names)
        if type(module) is str and type(name) is str:
            write = _WRITERS.get((module.partition(".")[0], name))
            if write is not None:
                return write
    return None


def is_table(kind: type) -> bool:
    """Return whether a class is a table, matrix or tensor of a known library, or extends one."""
    return find_writer(_bases(kind)) is not None


def _get(value: Any, library: str, name: str) -> Any:
    """Return an attribute or method of an object as its library's own class defines it."""
    for base in _bases(type(value)):
        module = _names[0](base)
        is_own = type(module) is str and module.partition(".")[0] == library
        if is_own and name in _namespace(base):
            return _namespace(base)[name].__get__(value, base)
    return object.__getattribute__(value, name)


def _with_state(encoder: Any, name: str, base: Encoded, state: dict[str, Any]) -> Encoded:
    return {TAG: "object", "type": name, "base": base, "state": encoder.state(state)}


def _list_column(values: Any) -> Any:
    """Return the values of a column or index: an array of numpy, or a list."""
    array = find_numpy_type("ndarray")
    if type(values) is array:
        return values
    return values.to_numpy(dtype=object).tolist()


def _describe_dtype(dtype: Any) -> object:
    """Return the name of a column's type; of categories also what they are."""
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return str(dtype)
    return [str(dtype), bool(dtype.ordered), categories.to_numpy(dtype=object).tolist()]


def _write_frame(encoder: Any, name: str, value: Any) -> Encoded:
    columns = _get(value, "pandas", "columns")
    take = _get(value, "pandas", "iloc")
    series = [take[:, position] for position in range(len(columns))]
    labels = columns.to_numpy(dtype=object).tolist()
    pairs = [
        (label, _list_column(item.array.to_numpy() if _is_plain(item) else item.array))
        for label, item in zip(labels, series)
    ]
    return _with_state(
        encoder,
        name,
        encoder.pairs("OrderedDict", pairs),
        {
            "dtypes": [_describe_dtype(item.dtype) for item in series],
            "columns": columns,
            "index": _get(value, "pandas", "index"),
            "attrs": _get(value, "pandas", "attrs"),
        },
    )


def _is_plain(item: Any) -> bool:
    """Return whether a column of pandas is kept as an array of numpy."""
    return type(item.array).__name__ == "NumpyExtensionArray"


def _write_series(encoder: Any, name: str, value: Any) -> Encoded:
    array = value.array
    content = encoder.encode(_list_column(array.to_numpy() if _is_plain(value) else array))
    return _with_state(
        encoder,
        name,
        content,
        {
            "name": _get(value, "pandas", "name"),
            "dtype": _describe_dtype(_get(value, "pandas", "dtype")),
            "index": _get(value, "pandas", "index"),
        },
    )


def _write_index(encoder: Any, name: str, value: Any) -> Encoded:
    """Encode an index by its labels; a range of labels is equal to the same labels written out."""
    name = name.replace("RangeIndex", "Index").replace(".range.", ".base.")
    content = encoder.encode(value.to_numpy(dtype=object).tolist())
    dtype = _describe_dtype(_get(value, "pandas", "dtype"))
    names = list(_get(value, "pandas", "names"))
    return _with_state(encoder, name, content, {"names": names, "dtype": dtype})


def _write_extension_array(encoder: Any, name: str, value: Any) -> Encoded:
    dtype = _describe_dtype(value.dtype)
    return _with_state(encoder, name, encoder.encode(_list_column(value)), {"dtype": dtype})


def _write_polars_frame(encoder: Any, name: str, value: Any) -> Encoded:
    columns = _get(value, "polars", "get_columns")()
    pairs = [(column.name, column.to_list()) for column in columns]
    dtypes = [str(column.dtype) for column in columns]
    return _with_state(encoder, name, encoder.pairs("OrderedDict", pairs), {"dtypes": dtypes})


def _write_polars_series(encoder: Any, name: str, value: Any) -> Encoded:
    content = encoder.encode(_get(value, "polars", "to_list")())
    dtype = str(_get(value, "polars", "dtype"))
    state = {"name": _get(value, "polars", "name"), "dtype": dtype}
    return _with_state(encoder, name, content, state)


def _write_polars_plan(encoder: Any, name: str, value: Any) -> Encoded:
    """Encode a query or an expression by its text: it isn't run."""
    explain = "explain" if "explain" in _namespace(type(value)) else "__str__"
    return {
        TAG: "object",
        "type": name,
        "state": encoder.state({"plan": _get(value, "polars", explain)()}),
    }


def _write_sparse(encoder: Any, name: str, value: Any) -> Encoded:
    """Encode the entries of a sparse matrix in order, whatever its format keeps besides."""
    entries = _get(value, "scipy", "tocoo")(copy=True)
    entries.sum_duplicates()
    coordinates = [item.astype("i8") for item in entries.coords]
    content = encoder.state({"coordinates": coordinates, "values": entries.data})
    shape = _get(value, "scipy", "shape")
    state = {"shape": shape, "format": _get(value, "scipy", "format")}
    return {TAG: "object", "type": name, "state": {**content, **encoder.state(state)}}


def _write_tensor(encoder: Any, name: str, value: Any) -> Encoded:
    dtype = str(value.dtype)
    plain = value.detach().cpu()
    plain = plain.float() if dtype == "torch.bfloat16" else plain
    state = {"dtype": dtype, "device": str(value.device), "requires_grad": value.requires_grad}
    return _with_state(encoder, name, encoder.encode(plain.resolve_conj().numpy()), state)


_WRITERS: dict[tuple[str, str], Writer] = {
    ("pandas", "DataFrame"): _write_frame,
    ("pandas", "Series"): _write_series,
    ("pandas", "Index"): _write_index,
    ("pandas", "ExtensionArray"): _write_extension_array,
    ("polars", "DataFrame"): _write_polars_frame,
    ("polars", "Expr"): _write_polars_plan,
    ("polars", "LazyFrame"): _write_polars_plan,
    ("polars", "Series"): _write_polars_series,
    ("scipy", "_spbase"): _write_sparse,
    ("scipy", "spmatrix"): _write_sparse,
    ("torch", "Tensor"): _write_tensor,
}
"""The writers of classes, by the library's name and their own."""

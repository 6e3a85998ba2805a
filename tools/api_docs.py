"""Write the tables of names in docs/api.md from the facades and their docstrings.

python tools/api_docs.py            rewrite the tables
python tools/api_docs.py --check    exit with 1 if they are out of date
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

GUIDE = Path(__file__).parent.parent / "docs" / "api.md"
_TABLE = re.compile(r"(<!-- names: ([\w.]+) -->\n).*?(<!-- end -->)", re.S)


def first_paragraph(value: object) -> str:
    """Return the first paragraph of a docstring, on one line."""
    text = inspect.getdoc(value) or ""
    return " ".join(text.partition("\n\n")[0].split())


def namespace_names(namespace: ModuleType) -> list[str]:
    """Return the public names of a namespace: those that its stub or `__all__` lists, else the
    classes and functions that the module defines."""
    listed = getattr(namespace, "__all__", None)
    if listed is not None:
        return sorted(listed)
    return sorted(
        name
        for name, value in vars(namespace).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == namespace.__name__
    )


def table(package: str) -> str:
    """Return a Markdown table of a facade's classes and functions, and then of its namespaces."""
    facade = importlib.import_module(package)
    rows, namespace_rows = [], []
    for name in sorted(facade.__all__, key=lambda name: (name[0].islower(), name)):
        value = getattr(facade, name)
        if inspect.ismodule(value):
            names = ", ".join(f"`{inner}`" for inner in namespace_names(value))
            namespace_rows.append(f"| `{name}` | {first_paragraph(value)} | {names} |\n")
        elif inspect.isclass(value) or inspect.isroutine(value):
            rows.append(f"| `{name}` | {first_paragraph(value)} |\n")
    text = "\n| name | what it is |\n|---|---|\n" + "".join(rows) + "\n"
    if namespace_rows:
        text += "| namespace | what it is for | names |\n|---|---|---|\n"
        text += "".join(namespace_rows) + "\n"
    return text


def updated(text: str) -> str:
    """Return the guide with its tables written anew."""
    return _TABLE.sub(lambda match: f"{match[1]}{table(match[2])}{match[3]}", text)


def main() -> None:
    """Rewrite the guide, or check it."""
    text = GUIDE.read_text("utf-8")
    if "--check" in sys.argv:
        sys.exit(updated(text) != text)
    GUIDE.write_text(updated(text), "utf-8")


if __name__ == "__main__":
    main()

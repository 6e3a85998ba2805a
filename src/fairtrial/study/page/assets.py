"""The style sheet and scripts of pages."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "assets"
LIBRARIES = ("vendor/d3.min.js", "vendor/plot.min.js")
SCRIPTS = (
    "dom.js",
    "tables.js",
    "figures.js",
    "verdicts.js",
    "outcomes.js",
    "conversation.js",
    "run_detail.js",
    "runs.js",
    "compare.js",
    "spending.js",
    "record.js",
    "main.js",
)
"""The parts of the page's script, in order; they share one scope."""
PLOT_STYLE = """:where(.plot) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.plot text),
:where(.plot tspan) {
  white-space: pre;
}"""
"""The style element that Observable Plot puts into each chart of class `plot`."""


@cache
def read_libraries() -> tuple[str, ...]:
    """Return the scripts of the libraries."""
    return tuple(_read(name) for name in LIBRARIES)


@cache
def read_script(more: tuple[str, ...] = ()) -> str:
    """Return the page's own script, with those of sections that extensions add."""
    *first, last = map(_read, SCRIPTS)
    parts = "\n".join((*first, *map(_keep_inside, more), last))
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


@cache
def read_style() -> str:
    """Return the style sheet."""
    return _read("page.css")


def _read(name: str) -> str:
    return _keep_inside((FOLDER / name).read_text("utf-8"))


def _keep_inside(script: str) -> str:
    return script.replace("</script", "<\\/script")


def hash_source(text: str) -> str:
    """Return the source expression of a Content-Security-Policy that allows this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"

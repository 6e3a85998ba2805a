"""The style sheet and scripts of pages."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "assets"
LIBRARIES = ("vendor/d3.min.js", "vendor/plot.min.js")
SCRIPTS = (
    "dom.js",
    "tables.js",
    "axes.js",
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
LIVE_SCRIPT = "live.js"
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
def read_script(more: tuple[str, ...] = (), *, is_live: bool = False) -> str:
    """Return the page's own script, with those of sections that extensions add.

    is_live: whether it asks the server of the page for what is new
    """
    *first, last = map(_read, SCRIPTS)
    live = [_read(LIVE_SCRIPT)] if is_live else []
    return _join((*first, *map(_keep_inside, more), *live, last))


@cache
def read_small_script(own: str) -> str:
    """Return a script with the functions that make elements and tables, and an own part."""
    return _join((*map(_read, SCRIPTS[:2]), _keep_inside(own)))


def _join(parts: Iterable[str]) -> str:
    text = "\n".join(parts)
    return f'(() => {{\n"use strict";\n{text}\n}})();\n'


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

"""The HTML document: data, style and scripts in one file, and a policy that allows no others."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from fairtrial.study.page import assets
from fairtrial.study.page.plain_data import to_script_json


def render_page(data: Mapping[str, Any]) -> str:
    """Return the HTML document of a page.

    data: what `collect_page` returns
    """
    shown = {name: value for name, value in data.items() if name != "scripts"}
    style, script = assets.read_style(), assets.read_script()
    if data.get("scripts"):
        script = assets.read_script(tuple(data["scripts"]))
    scripts = [*assets.read_libraries(), script]
    title = html.escape(str(data["title"]))
    blocks = "\n".join(f"<script>{text}</script>" for text in scripts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{content_policy(style, scripts)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="fairtrial">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="page"><noscript>{_without_scripts(data)}</noscript></div>
<script type="application/json" id="data">{to_script_json(shown)}</script>
{blocks}
</body>
</html>
"""


def content_policy(style: str, scripts: list[str]) -> str:
    """Return a policy that allows these scripts and styles, and no request to anywhere."""
    script_hashes = " ".join(map(assets.hash_source, scripts))
    style_hashes = " ".join(map(assets.hash_source, (style, assets.PLOT_STYLE)))
    return (
        f"default-src 'none'; script-src {script_hashes}; style-src {style_hashes}; "
        "base-uri 'none'; form-action 'none'"
    )


def _without_scripts(data: Mapping[str, Any]) -> str:
    """Return title and verdicts, for readers that run no scripts, such as those of mail."""
    lines = [f"<h1>{html.escape(str(data['title']))}</h1>"]
    for card in data.get("verdicts", ()):
        sentence = f"{card['label']}: {card['verdict']}. {card['why']}"
        lines.append(f"<p>{html.escape(sentence)}</p>")
    lines.append("<p>Charts and tables of this page need JavaScript.</p>")
    return "".join(lines)

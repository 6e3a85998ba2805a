"""The HTML document: data, style and scripts in one file, and a policy that allows no others."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from fairtrial.study.extensions import extensions
from fairtrial.study.page import assets
from fairtrial.study.page.plain_data import clean_text, to_script_json


def render_page(data: Mapping[str, Any]) -> str:
    """Return the HTML document of the page of a study.

    data: what `collect_page` returns
    """
    shown = {name: value for name, value in data.items() if name != "scripts"}
    scripts = [*assets.read_libraries(), assets.read_script(tuple(data.get("scripts", ())))]
    return _render(shown, scripts, _without_scripts(data))


def render_live_page(title: str) -> str:
    """Return the HTML document of a page that gets its data from the server that it came from.

    title: its title until it has its data
    """
    sections = tuple(filter(None, (one.page_script() for one in extensions())))
    scripts = [*assets.read_libraries(), assets.read_script(sections, is_live=True)]
    return _render({"title": clean_text(title, 300)}, scripts, "", is_live=True)


def render_document(data: Mapping[str, Any], script: str) -> str:
    """Return another HTML document in the style of pages, which may ask its server for data.

    data: what it shows, with a `title`
    script: JavaScript that shows it; it shares the scope of the functions that make elements
    """
    return _render(data, [assets.read_small_script(script)], "", is_live=True)


def page_headers(page: str) -> dict[str, str]:
    """Return the headers that a server sends with a page, among them the policy in its text."""
    policy = page.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    return {
        "Content-Security-Policy": f"{html.unescape(policy)}; frame-ancestors 'none'",
        "X-Frame-Options": "DENY",
    }


def _render(
    data: Mapping[str, Any], scripts: Sequence[str], without_scripts: str, *, is_live: bool = False
) -> str:
    style = assets.read_style()
    blocks = "\n".join(f"<script>{text}</script>" for text in scripts)
    policy = content_policy(style, scripts, is_live=is_live)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="fairtrial">
<title>{html.escape(str(data["title"]))}</title>
<style>{style}</style>
</head>
<body>
<div id="page"><noscript>{without_scripts}</noscript></div>
<script type="application/json" id="data">{to_script_json(data)}</script>
{blocks}
</body>
</html>
"""


def content_policy(style: str, scripts: Sequence[str], *, is_live: bool = False) -> str:
    """Return a policy that allows these scripts and styles, and no request to anywhere.

    is_live: whether requests to the server of the page are allowed
    """
    script_hashes = " ".join(map(assets.hash_source, scripts))
    style_hashes = " ".join(map(assets.hash_source, (style, assets.PLOT_STYLE)))
    connections = "connect-src 'self'; " if is_live else ""
    return (
        f"default-src 'none'; script-src {script_hashes}; style-src {style_hashes}; {connections}"
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

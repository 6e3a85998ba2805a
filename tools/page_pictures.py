"""Make the pictures of pages in docs/pictures/, in the tests' browser.

    python tools/page_pictures.py [NAME ...]       default: all

Runs the examples in a temporary folder: the study examples/search.yaml, half of it again, and for
the picture of candidates an optimization of examples/tidy by recorded answers. Needs
chromium-headless-shell and Pillow.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
FAIRTRIAL = [sys.executable, "-m", "fairtrial"]
BROWSER = "chromium-headless-shell"
COLORS = 96
RUN = "run-ae5e3c71e4dc"
"""A run of the search study."""
SIZES = {"wide": (1000, 760), "phone": (360, 640)}


def fairtrial(*arguments: object, folder: Path = ROOT) -> None:
    command = [*FAIRTRIAL, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stderr}")


def make_study(folder: Path, *options: str) -> Path:
    target = folder / ("half-of-it" if options else "search")
    fairtrial("run", "examples/search.yaml", "--output", target, *options)
    return target


def make_optimization(folder: Path) -> Path:
    project = folder / "tidy"
    shutil.copytree(ROOT / "examples" / "tidy", project)
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "base"]):
        names = ["-c", "user.name=demo", "-c", "user.email=demo@localhost"]
        subprocess.run(
            ["git", *names, "-c", "commit.gpgsign=false", *command], cwd=project, check=True
        )
    target = folder / "faster-tidy"
    replay = ("--agent", "replay", "--option", "path=recorded.jsonl", "--lineages", "2")
    limits = ("--max-candidates", "6", "--parallel-candidates", "2", "--unsandboxed")
    fairtrial("optimize", "problem.yaml", *replay, *limits, "--output", target, folder=project)
    return target


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Yield the address of a viewer."""
    process = subprocess.Popen(
        [*FAIRTRIAL, "view", folder.name, "--no-open"],
        cwd=folder.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": ""},
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


def shoot(browser, name, address, *, size="wide", scheme="light", ready="", below=""):
    """Write a picture of a page, with few colors, which keeps it small.

    ready: what must be shown first
    below: the section that the picture begins with
    """
    from PIL import Image

    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)
    page.goto(address)
    page.locator(ready or "svg.plot").first.wait_for(timeout=120_000)
    if below:
        page.locator(below).first.evaluate("node => node.scrollIntoView()")
    picture = page.screenshot()
    page.close()
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / f"{name}.png"
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    from playwright.sync_api import sync_playwright

    executable = shutil.which(BROWSER)
    if executable is None:
        sys.exit(f"there is no {BROWSER}")
    wanted = set(sys.argv[1:])
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary) / "artifacts"
        folder.mkdir()
        study = make_study(folder)
        fairtrial("report", study, "--html")
        make_study(folder, "--limit", "170")
        optimization = folder / "faster-tidy"
        if not wanted or "candidates" in wanted:
            make_optimization(folder)
            fairtrial("report", optimization, "--html")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page, code = (one / "report.html" for one in (study, optimization))
        shots = {
            "study": {"address": page.as_uri()},
            "study-dark": {"address": page.as_uri(), "scheme": "dark", "below": "#outcomes"},
            "study-phone": {"address": page.as_uri(), "size": "phone"},
            "run": {"address": f"{page.as_uri()}#run={RUN}", "ready": "dialog h2"},
            "candidates": {"address": code.as_uri(), "below": "#candidates"},
        }
        with serve(folder) as address:
            base = address.partition("/?")[0]
            shots["studies"] = {"address": address, "ready": "tbody .plain .badge"}
            with browser.new_context() as context:
                first = context.new_page()
                first.goto(address)
                links = first.locator("tbody a")
                links.first.wait_for()
                paths = links.evaluate_all("nodes => nodes.map(node => node.getAttribute('href'))")
                names = links.evaluate_all("nodes => nodes.map(n => n.parentNode.textContent)")
            (half,) = (p for p, n in zip(paths, names, strict=True) if n.endswith("half-of-it"))
            token = address.partition("/")[2].partition("?")[2]
            shots["live"] = {"address": f"{base}/{half}?{token}", "ready": "#runs .pager"}
            for name, options in shots.items():
                if not wanted or name in wanted:
                    shoot(browser, name, **options)
        browser.close()


if __name__ == "__main__":
    main()

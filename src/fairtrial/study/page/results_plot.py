"""Figures of results for papers, as matplotlib axes (extra `report`)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.core import Mistake, StudyError, atomic_write, did_you_mean
from fairtrial.study.ledger.interim_looks import record_interim_look
from fairtrial.study.page.page_data import collect_page
from fairtrial.study.page.plain_data import clean_text
from fairtrial.study.tables.results import Results, open_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN, ROW_IN, AROUND_IN = 7.0, 0.36, 1.3
MOST_ROWS = 60
MOST_DOTS = 3_000
LONGEST_LABEL = 48
TONES = {"good": "#1a7f37", "bad": "#c4302b", "caution": "#8a6d00", "open": "#4a5360"}
TIMED = {"faster": "good", "slower": "bad"}
FORMATS = (".svg", ".pdf")


class ResultsPlot:
    """Figures of a study's results. Each method draws into axes, and returns them.

    ax: axes to draw into; by default those of a new figure

    All raise `StudyError` if matplotlib is missing, or the results have nothing to draw.
    """

    def __init__(self, results: Results) -> None:
        self._results = results

    @cached_property
    def _data(self) -> dict[str, Any]:
        return collect_page(self._results, most_runs=MOST_DOTS, with_details=False)

    def effects(self, ax: Axes | None = None, *, outcome: str = "") -> Axes:
        """Draw the estimate and interval of each test, with the smallest effect of interest.

        outcome: the outcome; by default the first one that was tested
        """
        known = list(dict.fromkeys(effect["outcome"] for effect in self._data["effects"]))
        name = _choose("tested outcome", outcome, known)
        effects = [one for one in self._data["effects"] if one["outcome"] == name][:MOST_ROWS]
        ax = _prepare(ax, len(effects))
        for index, one in enumerate(effects):
            if one["margin"] is not None:
                band = (index - 0.4, index + 0.4)
                ax.fill_betweenx(band, -one["margin"], one["margin"], color="#e4e4e4", zorder=0)
            _draw_interval(ax, index, one, TONES[one["tone"]])
        ax.axvline(0, color="#555555", linewidth=1, zorder=1)
        _label_rows(ax, [one["label"] or one["id"] for one in effects])
        _say(ax.set_xlabel(f"{name}: difference"))
        return ax

    def conditions(self, ax: Axes | None = None, *, outcome: str = "") -> Axes:
        """Draw every run as a dot by condition, with the mean of each condition.

        Of more than 3,000 runs, these are spread evenly over the plan; means are of all.

        outcome: the outcome; by default the first one of the study
        """
        outcomes = {one["name"]: one for one in self._data["outcomes"]}
        name = _choose("outcome", outcome, list(outcomes))
        place = list(outcomes).index(name)
        groups = outcomes[name]["groups"][:MOST_ROWS]
        runs = self._data["runs"]
        values = runs["values"][place] if runs["values"] else []
        ax = _prepare(ax, len(groups))
        for index, group in enumerate(groups):
            of_group = zip(runs["condition"], runs["agent"], values, strict=True)
            key = group["condition"], group["agent"]
            dots = [value for c, a, value in of_group if (c, a) == key and value is not None]
            # Spread without random numbers: the same results give the same figure.
            heights = [index + 0.25 * (((i * 7) % 11) / 5 - 1) for i in range(len(dots))]
            ax.plot(dots, heights, "o", color="#2f6fb0", markersize=3, alpha=0.45, linestyle="")
            if group["mean"] is not None:
                ax.plot([group["mean"]] * 2, [index - 0.38, index + 0.38], color="black", lw=2)
        has_agents = len({group["condition"] for group in groups}) < len(groups)
        _label_rows(ax, [self._name_group(group, has_agents) for group in groups])
        _say(ax.set_xlabel(f"{name} (lines: means)"))
        return ax

    def timings(self, ax: Axes | None = None) -> Axes:
        """Draw how many times as fast as the base each timed candidate is, with its interval."""
        rows = [row for row in self._results.candidates if isinstance(row["ratio"], float)]
        if not rows:
            raise StudyError("no candidate was timed in these results")
        rows = rows[:MOST_ROWS]
        ax = _prepare(ax, len(rows))
        ax.set_xscale("log")
        for index, row in enumerate(rows):
            effect = {"estimate": row["ratio"], "low": row["low"], "high": row["high"]}
            _draw_interval(ax, index, effect, TONES[TIMED.get(str(row["verdict"]), "open")])
        ax.axvline(1, color="#555555", linewidth=1, zorder=1)
        is_many = len({row["run_id"] for row in rows}) > 1
        names = [f"{r['run_id'] if is_many else ''} {r['candidate_id']} {r['name']}" for r in rows]
        _label_rows(ax, [name.strip() for name in names])
        _say(ax.set_xlabel("how many times as fast as the base"))
        _name_ratios(ax)
        return ax

    def latencies(self, ax: Axes | None = None) -> Axes:
        """Draw a histogram of how long runs took."""
        bins = self._data["spending"]["latency"]["bins"]
        if not bins:
            raise StudyError("no run of these results has a latency")
        ax = _prepare(ax, 6)
        edges = [*(low for low, _, _ in bins), bins[-1][1]]
        ax.stairs([count for *_, count in bins], edges, fill=True, color="#2f6fb0")
        ax.set_xscale("log")
        ax.set_xlabel("latency in seconds")
        ax.set_ylabel("runs")
        return ax

    def _name_group(self, group: Mapping[str, Any], has_agents: bool) -> str:
        """Return the label of a condition, with the agent if conditions have several."""
        conditions, agents = self._data["conditions"], self._data["runs"]["agents"]
        label = str(conditions[group["condition"]]["label"]) if conditions else ""
        return f"{label} · {agents[group['agent']]}" if has_agents else label

    def draw_all(self) -> dict[str, Callable[[], Axes]]:
        """Return a function for each figure that these results have, by file name."""
        figures: dict[str, Callable[[], Axes]] = {}
        for name in dict.fromkeys(effect["outcome"] for effect in self._data["effects"]):
            figures[_file_name("effects", name)] = partial(self.effects, outcome=name)
        for one in self._data["outcomes"]:
            if any(group["mean"] is not None for group in one["groups"]):
                name = one["name"]
                figures[_file_name("conditions", name)] = partial(self.conditions, outcome=name)
        if any(isinstance(row["ratio"], float) for row in self._results.candidates):
            figures["timings"] = self.timings
        if self._data["spending"]["latency"]["bins"]:
            figures["latencies"] = self.latencies
        return figures


def write_figures(folder: Path, target: Path) -> list[Path]:
    """Write the figures of the study in a folder as SVG and PDF files; returns their paths.

    Of an unfinished study this is an interim look, and is recorded as one. Raises `LedgerError` if
    the folder has no results, and `StudyError` if matplotlib is missing or a file can't be written.
    """
    import io

    _require_matplotlib()
    import matplotlib

    written = []
    with open_results(folder) as results:
        figures = results.plot.draw_all()
        if not figures:
            raise StudyError(f"{folder} has no results to draw yet")
        # The same results give the same bytes. A character that the font lacks becomes a box.
        settings: Any = {"svg.hashsalt": "fairtrial", "svg.fonttype": "none", "pdf.fonttype": 42}
        with matplotlib.rc_context(settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            for name, draw in figures.items():
                figure: Any = draw().get_figure()
                for suffix in FORMATS:
                    buffer = io.BytesIO()
                    metadata = {"Date": None} if suffix == ".svg" else {"CreationDate": None}
                    figure.savefig(buffer, format=suffix[1:], metadata=metadata)
                    path = target / f"{name}{suffix}"
                    with atomic_write(path) as file:
                        file.buffer.write(buffer.getvalue())
                    written.append(path)
        record_interim_look(folder, results.study, results.reader.summary())
    return written


def _require_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise StudyError(Mistake((), "figures need matplotlib", 'pip install "fairtrial[report]"'))


def _prepare(ax: Axes | None, rows: int) -> Axes:
    """Return axes for some rows: those given, or those of a new figure."""
    _require_matplotlib()
    if ax is None:
        ax = _make_figure((WIDTH_IN, AROUND_IN + ROW_IN * max(rows, 2))).add_subplot()
    ax.set_axisbelow(True)
    ax.grid(axis="x", color="#eeeeee")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _make_figure(size: tuple[float, float]) -> Figure:
    """Return a new figure: one that a notebook shows below its cell, elsewhere one without window.

    size: width and height in inches
    """
    if _is_notebook():
        import matplotlib.pyplot as plt

        return plt.figure(figsize=size, layout="constrained")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    figure: Figure = NewFigure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _draw_interval(ax: Axes, index: int, effect: Mapping[str, Any], color: str) -> None:
    if effect["low"] is not None and effect["high"] is not None:
        ax.plot([effect["low"], effect["high"]], [index] * 2, color=color, linewidth=2)
    if effect["estimate"] is not None:
        ax.plot([effect["estimate"]], [index], "o", color=color, markersize=6)


def _label_rows(ax: Axes, labels: Sequence[str]) -> None:
    shown = [
        text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…" for text in labels
    ]
    ax.set_yticks(range(len(shown)), labels=[clean_text(text).replace("\n", " ") for text in shown])
    for label in ax.get_yticklabels():
        _say(label)
    ax.set_ylim(len(shown) - 0.4, -0.6)  # the first row on top
    ax.tick_params(axis="y", length=0)


def _name_ratios(ax: Axes) -> None:
    """Label a logarithmic axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = ax.get_xlim()
    subs = (
        (1.0, 2.0, 5.0) if high / low > 10 else (1.0, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0, 8.0, 9.0)
    )
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}x"))
    ax.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def _say(text: Any) -> None:
    """Show a text as it is: names may hold dollar signs, which start formulas."""
    text.set_parse_math(False)


def _choose(what: str, wanted: str, known: Sequence[str]) -> str:
    if not known:
        raise StudyError(f"these results have no {what}")
    if wanted and wanted not in known:
        raise StudyError(Mistake((), f"there is no {what} '{wanted}'", did_you_mean(wanted, known)))
    return wanted or known[0]


def _file_name(kind: str, name: str) -> str:
    safe = "".join(
        char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in name
    )
    return f"{kind}-{safe[:60]}"

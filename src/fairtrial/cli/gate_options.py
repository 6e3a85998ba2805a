"""The options of a gate: when a command that judged candidates fails, and the comment it writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import Judgement, gate
from fairtrial.cli.output import note, print_wrapped, shown_path
from fairtrial.core import Mistake, StudyError

FAILED = 7
"""The exit code of a gate that failed."""


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What was asked of a gate.

    conditions: the results that fail it
    max_regression: how much longer a candidate may take, as a share; 0 leaves it to the verdict
    markdown: the file for the comment; None for none
    """

    conditions: frozenset[gate.GateCondition] = frozenset()
    max_regression: float = 0.0
    markdown: Path | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether there is a gate."""
        return bool(self.conditions) or self.markdown is not None

    def judge(self, judgements: Sequence[Judgement], min_effect: float) -> gate.GateResult | None:
        """Return what the gate says of candidates; None if there is no gate."""
        if not self.is_wanted:
            return None
        return gate.Gate(self.conditions, self.max_regression, min_effect).judge(judgements)

    def show(self, result: gate.GateResult | None, *, as_json: bool) -> None:
        """Print what the gate says, unless the JSON document does, and write the comment."""
        if result is None:
            return
        for line in () if as_json else result.lines():
            print_wrapped(line)
        if self.markdown is not None:
            self.markdown.write_text(result.markdown(), "utf-8")
            note(f"the comment is in {shown_path(self.markdown)}")


def gate_as_dict(result: gate.GateResult | None) -> dict[str, Any]:
    """Return the gate's part of a JSON document; empty if there is no gate."""
    return {} if result is None else {"gate": result.as_dict()}


def gate_exit_code(result: gate.GateResult | None) -> int:
    """Return 7 if a gate failed, else 0."""
    return FAILED if result is not None and result.has_failed else 0


def gate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a gate to a command, which gets `GateOptions`."""
    fail_on = click.option(
        "--fail-on",
        default="",
        metavar="RESULT,...",
        help="Exit with 7 if a candidate is shown to be slower, is rejected, or is inconclusive.",
    )
    regression = click.option(
        "--max-regression",
        default="",
        metavar="SHARE",
        help="Exit with 7 only if it is shown to take longer by more than this, e.g. 2%.",
    )
    markdown = click.option(
        "--markdown",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write the result as a comment for a pull request.",
    )

    @wraps(command)
    def with_gate(
        *args: Any, fail_on: str, max_regression: str, markdown: Path | None, **kwargs: Any
    ) -> Any:
        conditions = gate.parse_conditions(fail_on)
        share = _read_share(max_regression)
        if share:
            conditions |= {gate.GateCondition.SLOWER}
        if markdown is not None and not markdown.absolute().parent.is_dir():
            message = f"--markdown: there is no folder {markdown.parent}"
            raise StudyError(Mistake((), message, "make it, or name another"))
        if markdown is not None:  # an earlier result must not pass for this one
            markdown.unlink(missing_ok=True)
        return command(*args, gate_choice=GateOptions(conditions, share, markdown), **kwargs)

    return fail_on(regression(markdown(with_gate)))


def _read_share(text: str) -> float:
    """Read a share: `2%` or `0.02`; raise `StudyError` if it is neither."""
    if not text:
        return 0.0
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(%?)", text.strip(), re.ASCII)
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value < 1:
        message = f"--max-regression: expected a share below 1, got '{text}'"
        raise StudyError(Mistake((), message, "write 2% or 0.02"))
    return value

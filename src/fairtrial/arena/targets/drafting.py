"""Draft the files of a problem: the problem itself, an input maker, recorded calls.

Every guess stands in the problem file as a comment with its reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.model.figures import seconds_text
from fairtrial.arena.targets.growth import Growth
from fairtrial.arena.targets.lookup import Target
from fairtrial.arena.targets.recording import RecordedRun, Recording
from fairtrial.arena.targets.replay import CallSample
from fairtrial.core import on_one_line
from fairtrial.sandbox import wire

PROBLEM, MAKERS, CALLS = "problem.yaml", "makers.py", "calls.json"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Findings:
    """What is known of a target when its problem is written.

    target: the function
    runs: the commands that were recorded
    recording: what was recorded of the function
    sample: the calls that are kept
    growth: how arguments are made larger, or made from type hints; None for neither
    checks: the commands that candidates are checked by, each with the reason
    python: the Python that runs them
    notes: what people should know
    """

    target: Target
    runs: Sequence[RecordedRun]
    recording: Recording
    sample: CallSample
    growth: Growth | None
    checks: Sequence[tuple[tuple[str, ...], str]]
    python: str
    notes: Sequence[str] = ()

    @property
    def reaching(self) -> list[str]:
        """The tests that reach the function."""
        return sorted(self.recording.tests - {""})

    @property
    def times_recorded(self) -> bool:
        """Whether recorded calls are timed: not one alone, which can be known by heart."""
        return len(self.sample.calls) > 1 or (bool(self.sample.calls) and self.growth is None)

    def describe(self) -> list[str]:
        """Return lines about what was found, for people."""
        recording, sample = self.recording, self.sample
        lines = [
            f"{self.target.text} (line {self.target.function.line}) is {self.target.reference}"
        ]
        if self.reaching:
            lines.append(
                f"reached by {_count(len(self.reaching), 'test')}: {list_some(self.reaching)}"
            )
        if recording.total:
            spent = f"{_count(recording.total, 'call')}, {seconds_text(recording.seconds)}"
            kept = (
                f"{len(sample.calls)} kept of {sample.distinct} distinct ones that can be repeated"
            )
            lines.append(f"recorded: {spent}; {kept}")
        lines += [f"left out: {_count(count, 'call')}: {why}" for why, count in self.left_out()]
        if self.growth is not None:
            lines.append(self.growth.text)
        elif len(sample.calls) == 1:
            lines.append(
                "one input alone can be known by heart, so no gain on it is adopted: record a "
                "command with more calls (--record), or add a maker to makers.py"
            )
        return [*lines, *self.notes]

    def left_out(self) -> list[tuple[str, int]]:
        """Return why calls were left out, the most frequent reason first."""
        return sorted(self.sample.left_out.items(), key=lambda item: -item[1])[:5]


def write_calls_file(sample: CallSample, reference: str) -> str:
    """Return the text of the file of recorded calls."""
    return "[\n{}\n]\n".format(
        ",\n".join(wire.dump_encoded(call.as_dict(reference)) for call in sample.calls)
    )


def write_makers(findings: Findings) -> str:
    """Return the text of the input makers."""
    sample, growth = findings.sample, findings.growth
    what = f"Inputs of {findings.target.reference}, drafted by fairtrial; edit them at will."
    head = [f'"""{what}', "", "A maker is called as make(rng), with a random.Random, and returns"]
    head += ["(args, kwargs). `fairtrial_makers` is there for makers only.", '"""', ""]
    names = [
        *(["load_calls"] if sample.calls else []),
        *(["from_hints"] if growth and growth.hints else []),
    ]
    lines = [*head, f"from fairtrial_makers import {', '.join(sorted(names))}", ""]
    if sample.calls:
        lines += [
            f'CALLS = load_calls(__file__, "{CALLS}")  # with the time that each stands for',
            "",
        ]
    if findings.times_recorded:
        lines += [
            "",
            "def recorded(rng):",
            '    """A recorded call, drawn mostly by the time that calls of its kind took."""',
            "    return CALLS.draw(rng)",
            "",
        ]
    if growth is not None and growth.hints:
        hints = ", ".join(map(repr, growth.hints))
        lines += [
            "",
            "def hinted(rng):",
            '    """Values of the types that the function\'s hints name; no call was recorded."""',
            f"    return from_hints([{hints}], rng, size={growth.factor}), {{}}",
            "",
        ]
    elif growth is not None:
        places = ", ".join(map(repr, growth.places))
        lines += [
            "",
            f"def {growth.maker}(rng):",
            f'    """A recorded call with arguments of other content: {growth.sizes}."""',
            f"    return CALLS.draw_larger(rng, arguments=[{places}], factor={growth.factor})",
            "",
        ]
    return "\n".join(lines)


def write_problem(findings: Findings, folder: Path) -> str:
    """Return the text of the problem file.

    folder: the folder that the file is written to
    """
    target, growth, sample = findings.target, findings.growth, findings.sample
    repo = os.path.relpath(target.project, folder)
    lines = [
        f"# The problem of making {target.text} faster, drafted by fairtrial. Edit it at will."
    ]
    roots = ", ".join(map(_quote, target.roots))
    lines += _wrap_comment(findings.describe())
    lines += [
        f"problem_id: {_quote(target.problem_id)}",
        f"brief: {_quote(make_brief(findings))}",
        f"repo: {_quote(Path(repo).as_posix())}",
        f"editable: [{_quote(target.path)}]  # the function's file; add others that may change",
        f"import_roots: [{roots}]  # `{target.module}` is found there",
        f"# python: {findings.python}  # found; name another one here",
        "check:",
    ]
    for words, why in findings.checks:
        lines.append(f"  # {why}")
        lines.append(f"  - command: [{', '.join(map(_quote, words))}]")
        lines.append("    timeout_s: 300")
    if sample.calls:
        lines.append(f"  # {_count(len(sample.calls), 'recorded call')}, which the base reproduces")
        lines.append(f"  - function: {_quote(target.reference)}")
        lines.append(f"    calls: {CALLS}")
    if growth is not None:
        lines.append(f"  # {growth.text}")
        lines.append(f"  - function: {_quote(target.reference)}")
        lines.append(f"    inputs: {MAKERS}:{growth.maker}")
        lines.append("    cases: 20")
    lines += _write_benchmarks(findings)
    return "\n".join(lines) + "\n"


def _write_benchmarks(findings: Findings) -> list[str]:
    target, growth, sample = findings.target, findings.growth, findings.sample
    if not sample.calls and growth is None:
        return ["# bench: the slowest tests are timed, as there are no calls to time"]
    lines = ["bench:"]
    if findings.times_recorded:
        lines += [
            f"  # {_count(len(sample.calls), 'distinct recorded input')}",
            "  - name: recorded",
            f"    call: {_quote(target.reference)}",
            f"    inputs: {MAKERS}:recorded",
        ]
    if growth is not None:
        lines += [
            f"  - name: {growth.maker}",
            f"    call: {_quote(target.reference)}",
            f"    inputs: {MAKERS}:{growth.maker}",
        ]
    return lines


def make_brief(findings: Findings) -> str:
    """Return the task for an agent: what the function is, its tests, how its time is spent."""
    target, recording = findings.target, findings.recording
    function = target.function
    parts = [
        f"Make `{target.reference}` faster ({target.path}, lines {function.first}-{function.last})"
        " without changing what it does."
    ]
    if function.doc:
        parts.append(f"It says of itself: {on_one_line(function.doc, 200)}")
    if findings.reaching:
        files = sorted({test.partition("::")[0] for test in findings.reaching})
        parts.append(f"{len(findings.reaching)} tests reach it, in {list_some(files)}.")
    slow = sorted(recording.keys.items(), key=lambda item: -item[1][1])[:_SHOWN]
    if recording.seconds > 0 and slow:
        shares = [
            f"{seconds / recording.seconds:.0%} in {_count(count, 'call')} with ({key})"
            for key, (count, seconds) in slow
        ]
        parts.append(
            f"Its time in {_count(recording.total, 'recorded call')}: {'; '.join(shares)}."
        )
    if findings.growth is not None:
        parts.append(
            f"It is timed with recorded calls and with new ones ({findings.growth.sizes})."
        )
    return " ".join(parts)


def draft_files(findings: Findings, folder: Path) -> Mapping[str, str]:
    """Return the files of the problem, by name."""
    files = {PROBLEM: write_problem(findings, folder)}
    if findings.sample.calls:
        files[CALLS] = write_calls_file(findings.sample, findings.target.reference)
    if findings.sample.calls or findings.growth is not None:
        files[MAKERS] = write_makers(findings)
    return files


def _wrap_comment(lines: Sequence[str]) -> list[str]:
    import textwrap

    wrapped = []
    for line in lines:
        text = on_one_line(line, 600)
        wrapped += textwrap.wrap(text, 98, initial_indent="# ", subsequent_indent="#   ")
    return wrapped


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def list_some(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown

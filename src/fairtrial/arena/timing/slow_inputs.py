"""Inputs on which a candidate takes longer than the base, described by type and size."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fairtrial.arena.checks.encoded_values import TAG, Encoded
from fairtrial.arena.checks.value_text import render
from fairtrial.arena.model.timings import Sample, SlowInput
from fairtrial.arena.timing.inputs import read_input
from fairtrial.arena.timing.stats.session_ratio import net_rounds

SLOWER = 1.5
"""From this multiple of the base's time on, in wall and CPU time, an input is reported."""
MOST_OF_SESSION = 3
LONGEST_VALUE, MOST_ARGUMENTS, MOST_KINDS = 24, 4, 3


def find_slow_inputs(
    samples: Sequence[Sample], inputs: Sequence[bytes], number: int
) -> tuple[SlowInput, ...]:
    """Return the inputs of a session on which the candidate is slowest relative to the base.

    CPU time must agree where it is known: another program that uses the core is not the input's
    fault.

    inputs: one for the warm-up, then those of each round
    number: the number of the session
    """
    walls = net_rounds(samples, lambda sample: sample.wall_s)
    knows_cpu = all(sample.cpu_s is not None for sample in samples)
    cpus = net_rounds(samples, lambda sample: sample.cpu_s or 0.0) if knows_cpu else walls
    calls = max((sample.calls for sample in samples), default=1)
    slow = []
    for turn, (base_s, candidate_s) in walls.items():
        growth = candidate_s / base_s
        base_cpu_s, candidate_cpu_s = cpus.get(turn, (1.0, 0.0))
        if growth >= SLOWER and candidate_cpu_s >= SLOWER * base_cpu_s:
            first = 1 + turn * calls
            what = _describe_inputs(inputs[first : first + calls])
            slow.append(SlowInput(number, first, calls, growth, what))
    return tuple(sorted(slow, key=lambda slow_input: -slow_input.growth)[:MOST_OF_SESSION])


def _describe_inputs(inputs: Sequence[bytes]) -> str:
    """Return types and sizes of the inputs of a sample: ``1 × list of 401, 14 × list of 400``."""
    counts = Counter(describe_input(read_input(case)) for case in inputs)
    if len(counts) == 1:
        return next(iter(counts))
    rarest = sorted(counts.items(), key=lambda item: item[1])
    shown = ", ".join(f"{count} × {what}" for what, count in rarest[:MOST_KINDS])
    return shown + (", ..." if len(rarest) > MOST_KINDS else "")


def describe_input(case: Mapping[str, Any]) -> str:
    """Return types and sizes of a call's arguments: ``list of 400, key=None``."""
    try:
        named = [f"{name}={_describe(value)}" for name, value in case["kwargs"].items()]
        parts = [*map(_describe, case["args"]), *named]
    except (KeyError, TypeError, AttributeError):
        return "an input that can't be read"
    shown = ", ".join(parts[:MOST_ARGUMENTS]) or "no arguments"
    return shown + (", ..." if len(parts) > MOST_ARGUMENTS else "")


def _describe(node: Encoded) -> str:
    if isinstance(node, list):
        return f"list of {len(node):,}"
    if isinstance(node, str) and len(node) > LONGEST_VALUE:
        return f"text of {len(node):,} characters"
    if isinstance(node, dict) and TAG not in node:
        return f"dict of {len(node):,}"
    if isinstance(node, dict) and "shape" in node:
        return f"array of shape {tuple(node['shape'])}"
    if isinstance(node, dict) and isinstance(node.get("items"), list):
        return f"{node[TAG]} of {len(node['items']):,}"
    if isinstance(node, dict) and node.get(TAG) in ("bytes", "bytearray"):
        size = len(base64.b64decode(node["value"]))
        return f"{node[TAG]} of {size:,}" if size > LONGEST_VALUE else render(node, LONGEST_VALUE)
    return render(node, LONGEST_VALUE)

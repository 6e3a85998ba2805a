"""Measurements as plain data, as ``--json`` prints them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fairtrial.arena.model.timings import Estimate, Measurement


def measured_as_dict(measured: Measurement | None) -> dict[str, Any]:
    """Return the details of a measurement as plain data; empty values if there is none."""
    if measured is None:
        nothing: dict[str, Any] = dict.fromkeys(("confidence", "adopt"))
        return {
            **nothing,
            "vetoes": [],
            "is_confirmed": False,
            "waited_s": None,
            "timings": [],
            "instructions": {},
            "total_checks": [],
        }
    return {
        "confidence": measured.estimate.confidence if measured.estimate else None,
        "adopt": measured.adopt,
        "vetoes": list(measured.vetoes),
        "is_confirmed": measured.is_confirmed,
        "waited_s": round(measured.waited_s, 3),
        "timings": [
            {
                "benchmark": timing.benchmark,
                "verdict": timing.verdict.value,
                **_estimate_as_dict(timing.estimate),
                "cpu_ratio": timing.cpu_ratio,
                "base_s": timing.base_s,
                "calls": timing.calls,
                "startup": timing.startup,
                "outside": timing.outside,
                "peak_rss_mb": timing.peak_rss_mb and asdict(timing.peak_rss_mb),
                "notes": list(timing.notes),
                "total": timing.total and timing.total.as_dict(),
                "tail": timing.tail and timing.tail.as_dict(),
                "slow_inputs": [asdict(slow) for slow in timing.slow_inputs],
                "startup_extra_s": timing.startup_extra_s,
                "pays_after": timing.pays_after,
                "serial_correlation": timing.serial_correlation,
                "rounds": timing.rounds,
                "sample_s": timing.sample_s,
                "round_noise": timing.round_noise,
                "timed_share": timing.timed_share,
                "memory": timing.memory and timing.memory.as_dict(),
                "cpu": timing.cpu and timing.cpu.as_dict(),
            }
            for timing in measured.timings
        ],
        "instructions": {
            timing.benchmark: {**asdict(pair), "ratio": pair.base / pair.candidate}
            for timing in measured.timings
            if (pair := timing.instructions) is not None
        },
        "total_checks": [
            {**asdict(check), "verdict": check.verdict.value} for check in measured.total_checks
        ],
    }


def _estimate_as_dict(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return dict.fromkeys(("ratio", "interval", "confidence"))
    return estimate.as_dict()

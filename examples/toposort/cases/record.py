"""Writes toposort.json beside it: `PYTHONPATH=src python cases/record.py`, in the project's folder."""

from __future__ import annotations

from pathlib import Path

from toposort import sort

from fairtrial.arena.calls import record_call, write_calls

GRAPHS: list[dict[int, list[int]]] = [
    {},
    {1: []},
    {5: [9]},
    {3: [2], 2: [1], 1: []},
    {4: [], 2: [], 3: [1], 1: []},
    {1: [2, 2], 2: [3, 3]},
    {10: [9, 8], 9: [7], 8: [7], 7: []},
    {-1: [0], 0: [-2]},
    {1: [1]},
    {1: [], 2: [3], 3: [2]},
]

if __name__ == "__main__":
    write_calls(
        Path(__file__).with_name("toposort.json"), [record_call(sort, graph) for graph in GRAPHS]
    )

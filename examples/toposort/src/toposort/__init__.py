"""Sort the nodes of a graph so that each comes after those that it needs."""

from toposort.sorting import CycleError, sort

__all__ = ["CycleError", "sort"]

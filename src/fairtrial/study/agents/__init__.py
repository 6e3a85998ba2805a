"""Agents: how they are called, what a task gives them, and how their output is read."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

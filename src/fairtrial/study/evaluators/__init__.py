"""Evaluators that a study names: plug-ins that score an output by problem and reference."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

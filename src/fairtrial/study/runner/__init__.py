"""Run studies: `run.py` leads from a study to its results."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

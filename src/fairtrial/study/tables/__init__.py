"""The canonical tables of a study, bundles of them, and results in Python."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

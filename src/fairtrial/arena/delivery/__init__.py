"""Delivery of the winner: recheck, coverage, profile, explanation, patch, tree and branch."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

"""Designs of studies: from factors to conditions, and from conditions to planned runs."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

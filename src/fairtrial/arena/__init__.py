"""Judge code candidates: snapshot, slots, checks, timing, delivery."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

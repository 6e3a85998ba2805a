"""Sequential statistics that studies and the timing of candidates share: levels of planned looks,
and confidence sequences. Pure functions."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

"""Search for faster code: proposers, the optimize loop, and the confirmed winner."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

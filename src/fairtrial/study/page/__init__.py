"""The HTML page of a study: one file that needs no network and no server."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

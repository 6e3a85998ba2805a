"""Foundations: errors, records, documents, canonical JSON, files, plug-ins."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

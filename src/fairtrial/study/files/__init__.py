"""Study files: reading, writing, overriding values, and the JSON Schema."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

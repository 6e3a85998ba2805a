"""What moves over from design-research-experiments: recipes, keyword forms, legacy keys."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

"""Problems: packets, the hooks of problems, and reading what evaluators return."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

"""Run untrusted commands: isolation, limits, the host lock. `harness` is what runs inside."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

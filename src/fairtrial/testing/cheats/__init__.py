"""The attack suite: cheating candidates for your own problem, and which of them would win there."""

from __future__ import annotations

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

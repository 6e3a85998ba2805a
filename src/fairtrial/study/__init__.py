"""Designed studies: model, design, power, running, ledger, tables, tests and report."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

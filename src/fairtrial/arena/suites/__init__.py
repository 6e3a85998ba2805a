"""Suites of benchmarks that were written for other tools: pytest-benchmark and asv.

They are found on the command line, made into a problem, and their results exchanged as
pytest-benchmark's JSON.
"""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

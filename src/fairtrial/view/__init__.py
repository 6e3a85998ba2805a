"""Pages of studies in a browser, live: a server on loopback that reads ledgers and nothing else."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

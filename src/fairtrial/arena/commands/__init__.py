"""Commands compared with each other: two command lines, or one command in two revisions.

There is no problem file: each run is a new process, timed by a process beside it; nothing is
checked but how the command exits.
"""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

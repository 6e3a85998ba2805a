"""Running of untrusted commands: isolation, limits, and the host lock around timing.

`harness` holds the code that runs inside the sandbox.
"""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

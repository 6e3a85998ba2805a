"""The full simulation study of the timing test: see `simulated_clocks.py`, beside this.

    python benchmarks/statistics.py

A script's folder comes first on Python's path, so that the other scripts in this folder find this
file when they (or what they import) ask for the standard library's `statistics`. They get that.
"""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

if __name__ == "__main__":
    from simulated_clocks import main

    sys.exit(main())

_here = Path(__file__).resolve().parent
_elsewhere = [each for each in sys.path if Path(each or ".").resolve() != _here]
_spec = importlib.machinery.PathFinder.find_spec("statistics", _elsewhere)
assert _spec is not None
assert _spec.loader is not None
sys.modules[__name__] = _module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

"""Studies, run: `run.py` is the straight line from a study to its results."""

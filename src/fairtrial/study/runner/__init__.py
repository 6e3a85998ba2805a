"""Run studies: `run.py` leads from a study to its results."""

"""The code of honest but unusual candidates, for `benchmarks/honest.py`."""

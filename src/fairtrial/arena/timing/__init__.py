"""Timing: prepared benchmarks, sessions of base and candidate, and decisions about them."""

"""Timing: sessions of base and candidate, alone on the machine."""

"""Candidates: read them, resolve them against the base, check their paths, detect duplicates."""

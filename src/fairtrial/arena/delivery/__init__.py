"""Delivery of the winner: recheck, coverage, profile, explanation, patch, tree and branch."""

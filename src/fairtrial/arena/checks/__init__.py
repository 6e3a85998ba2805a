"""Checks of candidates: pytest suites, function calls and commands, compared with the base."""

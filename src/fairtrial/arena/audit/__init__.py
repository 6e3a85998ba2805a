"""The audit of a problem's checks: null candidates and mutants, which they must reject."""

"""Statistical tests and their power: pure functions of numbers."""

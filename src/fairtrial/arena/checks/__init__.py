"""What must hold for a candidate: tests, function calls, commands."""

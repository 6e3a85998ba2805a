"""What can be said of code without running it."""

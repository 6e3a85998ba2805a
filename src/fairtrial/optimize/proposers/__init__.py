"""The built-in proposers."""

"""Folders that candidates take turns in: made once, brought back to the base, removed."""

"""Hypotheses before any run: which groups they compare, by which tests, and in which words."""

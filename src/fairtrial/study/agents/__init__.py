"""Agents: how they are called, what a task gives them, and how their output is read."""

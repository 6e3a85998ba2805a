"""Executors: run assignments in this process, in worker processes or in threads."""

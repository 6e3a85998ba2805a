"""Suites that ship with the package: what an executor must pass, a third party's too."""

"""Conformance suites for plug-ins, such as `executors` and `sandboxes`; and `cheats`, attacks."""

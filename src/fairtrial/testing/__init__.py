"""Conformance suites for plug-ins, such as `executors` and `sandboxes`; `cheats` attacks problems."""

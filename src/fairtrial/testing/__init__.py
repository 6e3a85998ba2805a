"""Conformance suites for plug-ins: `executors`, `sandboxes`, and `isolation` for full sandboxes."""

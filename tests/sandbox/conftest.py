"""Rewrites the assertions of the conformance suites, so that their failures are detailed."""

import pytest

for name in ("sandbox_commands", "isolation", "sandboxes", "resource_usage"):
    pytest.register_assert_rewrite(f"fairtrial.testing.{name}")

"""Failures of the suites that ship with the package tell more."""

import pytest

for name in ("sandbox_commands", "isolation", "sandboxes", "resource_usage"):
    pytest.register_assert_rewrite(f"fairtrial.testing.{name}")

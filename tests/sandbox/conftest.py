"""Failures of the suites that ship with the package tell more."""

import pytest

for name in ("commands", "isolation", "sandboxes", "usage"):
    pytest.register_assert_rewrite(f"fairtrial.testing.{name}")

"""Settings for all tests."""

import os

from hypothesis import HealthCheck, settings

# No deadlines: a busy machine is no reason to fail. In CI the examples are the same every time.
settings.register_profile(
    "fairtrial",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("fairtrial")

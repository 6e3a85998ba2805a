"""Settings that all tests share."""

from hypothesis import settings

# How long an example takes says more about the machine, and who else uses it, than about the code.
settings.register_profile("any_machine", deadline=None)
settings.load_profile("any_machine")

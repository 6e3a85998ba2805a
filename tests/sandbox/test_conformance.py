"""All built-in sandboxes pass the conformance suites."""

import os

import pytest

from fairtrial.sandbox import Plain
from fairtrial.sandbox.bubblewrap import Bubblewrap
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.selection import try_sandbox
from fairtrial.testing.isolation import FullSandboxConformance
from fairtrial.testing.sandboxes import SandboxConformance


def needs(sandbox):
    reason = try_sandbox(sandbox)
    return pytest.mark.skipif(bool(reason), reason=f"{sandbox.name} doesn't work here: {reason}")


class TestPlain(SandboxConformance):
    @pytest.fixture
    def sandbox(self):
        return Plain()


@needs(Bubblewrap())
class TestBubblewrap(FullSandboxConformance):
    protects_devices = os.geteuid() != 0

    @pytest.fixture
    def sandbox(self):
        return Bubblewrap()


@needs(Namespaces())
class TestNamespaces(FullSandboxConformance):
    vanishing_s = 60.0

    @pytest.fixture
    def sandbox(self):
        return Namespaces()

"""Selection of a sandbox, and the message if none works."""

import anyio
import pytest

from fairtrial.core import LabError, plugins
from fairtrial.sandbox import Plain, bubblewrap, find_sandbox, selection
from fairtrial.sandbox.bubblewrap import Bubblewrap
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.selection import try_sandbox


@pytest.fixture
def working(monkeypatch):
    """Return a function that sets which sandboxes work."""

    def say(*names, user=1000):
        reasons = {
            each.name: "" if each.name in names else "broken" for each in selection.FULL_SANDBOXES
        }
        monkeypatch.setattr(selection, "_trial_results", reasons)
        monkeypatch.setattr(bubblewrap.os, "geteuid", lambda: user)

    return say


@pytest.mark.parametrize("wanted", ["auto", "require"])
def test_bubblewrap_comes_first_except_for_root(working, wanted):
    working("bubblewrap", "namespaces")
    assert find_sandbox(wanted) == Bubblewrap()
    working("bubblewrap", "namespaces", user=0)
    assert find_sandbox(wanted) == Namespaces()
    working("bubblewrap", user=0)
    assert find_sandbox(wanted) == Bubblewrap()
    working("namespaces")
    assert find_sandbox(wanted) == Namespaces()


def test_without_a_sandbox_it_says_what_to_do(working):
    working()
    with pytest.raises(LabError, match=r"install bubblewrap.*--unsandboxed.*bubblewrap: broken"):
        find_sandbox("auto")
    with pytest.raises(LabError, match="install bubblewrap") as caught:
        find_sandbox("require", unsandboxed=True)
    assert "--unsandboxed" not in str(caught.value)


def test_plain_is_taken_only_if_the_user_says_so(working):
    working()
    assert find_sandbox("auto", unsandboxed=True) == Plain()
    assert find_sandbox("plain", unsandboxed=True) == Plain()
    working("bubblewrap")
    assert find_sandbox("auto", unsandboxed=True) == Bubblewrap()
    with pytest.raises(LabError, match="--unsandboxed"):
        find_sandbox("plain")


def test_it_is_really_tried_and_only_once(monkeypatch):
    tries = []

    class Broken:
        name = "broken"

        async def run(self, command):
            tries.append(command)
            raise LabError("no luck")

    monkeypatch.setattr(selection, "_trial_results", {})
    assert [try_sandbox(Broken()), try_sandbox(Broken())] == ["no luck", "no luck"]
    assert len(tries) == 1


def test_it_can_be_asked_for_while_a_loop_runs(monkeypatch):
    monkeypatch.setattr(selection, "_trial_results", {})

    async def ask():
        return try_sandbox(Plain())

    assert anyio.run(ask) == ""


@pytest.mark.parametrize("kind", [Plain, Bubblewrap, Namespaces])
def test_it_is_found_by_its_name(kind):
    assert plugins.load("sandboxes", kind.name) is kind


def test_plain_says_what_it_cannot_do():
    assert len(Plain().shortfalls) >= 3
    assert not Plain().relocates

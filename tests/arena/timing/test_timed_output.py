"""What is printed while a function is timed: the same as on the base."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairtrial.arena.stage import HARNESS
from fairtrial.arena.timing.timed_output import find_output_difference
from fairtrial.arena.timing.worker_channel import WorkerChannel
from fairtrial.sandbox import Captured, Completed, Ending
from fairtrial.sandbox.wire import Caps

SAME = {"base": Path("/project"), "candidate": Path("/project")}
OTHER = {"base": Path("/slots/1"), "candidate": Path("/slots/22")}


def printed(out, tail=b"", dropped=0):
    captured = Captured(out, tail, dropped)
    return Completed(Ending.EXITED, 0, None, captured, Captured(), b"", False, 1, 1, 1)


@pytest.mark.parametrize(
    ("base", "candidate", "is_stable", "is_found"),
    [
        ((b"",), (b"",), True, False),
        ((b"a\n",), (b"a\n",), True, False),
        ((b"a\n",), (b"",), True, True),
        ((b"a\n",), (b"",), False, True),
        ((b"",), (b"a\n",), False, True),
        ((b"a\n",), (b"b\n",), True, True),
        ((b"a\n",), (b"b\n",), False, False),
        ((b"a\n", b"z\n", 5), (b"a\n", b"z\n", 5), True, False),
        ((b"a\n", b"z\n", 5), (b"a\n", b"z\n", 6), True, True),
        ((b"a\n", b"z\n", 5), (b"a\n", b"y\n", 5), True, True),
    ],
)
def test_output_is_compared_as_far_as_it_does_not_vary(base, candidate, is_stable, is_found):
    done = {"base": printed(*base), "candidate": printed(*candidate)}
    assert bool(find_output_difference(done, SAME, is_stable=is_stable)) == is_found


def test_paths_of_slots_are_no_difference():
    done = {"base": printed(b"in /slots/1/a"), "candidate": printed(b"in /slots/22/a")}
    assert find_output_difference(done, OTHER, is_stable=True) is None
    assert find_output_difference(done, SAME, is_stable=True) is not None


def test_a_candidate_that_had_to_be_stopped_has_printed_nothing():
    difference = find_output_difference({"base": printed(b"a")}, SAME, is_stable=True)
    assert (difference.expected, difference.actual) == ("some output", "nothing")
    assert find_output_difference({"base": printed(b"")}, SAME, is_stable=True) is None


def test_a_timed_worker_s_output_is_that_of_its_calls_and_not_of_its_imports(tmp_path):
    """Without waiting for a buffer to be full, or for the end of the interpreter."""
    module = (
        "import os\nprint('imported')\ndef run(n):\n    print('called with', n)\n    return n\n"
    )
    (tmp_path / "loud.py").write_text(module, "utf-8")
    channel = WorkerChannel()
    environment = {"FAIRTRIAL_CHANNEL": str(channel.remote), "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, str(HARNESS / "timed_worker.py")],
        pass_fds=[channel.remote],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        channel.wait_for_start(60)
        channel.close_remote()
        job = {"function": "loud:run", "view": "", "caps": list(Caps())}
        channel.ask(b"L", json.dumps(job).encode(), timeout_s=60)
        for number in (3, 4):
            channel.ask(b"I", b'{"args":[%d],"kwargs":{}}' % number, timeout_s=60)
            channel.ask(b"G", timeout_s=60)
            channel.ask(b"C", timeout_s=60)
        channel.shut_down()
        out, err = process.communicate(timeout=60)
    channel.close()
    assert out == b"called with 3\ncalled with 4\n"
    assert err == b"imported\n"

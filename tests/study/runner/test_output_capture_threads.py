"""Standard streams after several studies at once."""

import sys
import threading

import pytest
from run_kit import make_study, run


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_studies_in_threads_leave_the_standard_streams_as_they_were(tmp_path, executor):
    before = sys.stdout, sys.stderr
    entered = threading.Barrier(3)
    ended = [threading.Event() for _ in range(3)]

    def study(number):
        def agent(task):
            entered.wait(60)  # all three capture now; they end in the order in which they began
            if number:
                ended[number - 1].wait(60)
            return {"x": 1}

        run(make_study(tmp_path / str(number), (1,), 1), agent, executor=executor)
        ended[number].set()

    threads = [threading.Thread(target=study, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sys.stdout, sys.stderr) == before

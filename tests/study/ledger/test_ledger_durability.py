"""Counted results are durable: kill -9 at any instant, a full disk, a failing one."""

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import ledger_kit
import pytest
from ledger_kit import SOUND, add, begin, make_plan, run_script

from fairtrial import LedgerError
from fairtrial.study.ledger import LEDGER_NAME, LedgerReader
from fairtrial.study.ledger.writer import COMMIT_RUNS, open_ledger

KITS = Path(ledger_kit.__file__).parent

NURSERY = """
    import os, random, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[2])
    import msgspec
    from fairtrial.study.ledger.lock import OwnerLock
    from fairtrial.study.ledger.reader import LedgerReader
    from fairtrial.study.ledger.writer import open_ledger
    from ledger_kit import add, make_plan, write_plan

    folder = Path(sys.argv[1]) / "study"
    folder.mkdir()
    plan = make_plan(levels=50, replicates=1000)
    order = plan.order()

    def work(seed):
        rng = random.Random(seed)
        witness = os.open(sys.argv[1] + "/witness", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with OwnerLock(folder):
            ledger = open_ledger(folder)
            if ledger.fact("order") is None:
                write_plan(ledger, plan)
            ledger.begin_session({"pid": os.getpid()})
            index = 1 + max(LedgerReader(ledger.connection, None).done_indexes(), default=-1)
            os.write(1, b"begun\\n")
            while True:
                done = index + rng.choice([1, 5, 40])
                for index in range(index, done):
                    add(ledger, plan, order, index, events=[{"text": "a"}, {"text": "b"}])
                index = done
                ledger.commit()
                os.write(witness, f"{done}\\n".encode())

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            work(int(line))
        os.write(1, f"{child}\\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"gone\\n")
"""


def test_kill_9_at_any_instant_loses_nothing_that_was_committed(tmp_path):
    """Twenty owners in a row are killed: while they open the ledger, and while they write."""
    rng = random.Random()
    script = [sys.executable, "-c", textwrap.dedent(NURSERY), str(tmp_path)]
    witness = tmp_path / "witness"
    with subprocess.Popen(
        [*script, str(KITS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as nursery:
        for number in range(20):
            nursery.stdin.write(f"{number}\n")
            nursery.stdin.flush()
            line = nursery.stdout.readline().strip()
            begun = line == "begun"
            child = int(nursery.stdout.readline() if begun else line)
            if number % 4 and not begun:
                assert nursery.stdout.readline() == "begun\n"
                begun = True
            if number % 4 == 1:  # else it may be that none of them ever gets far
                enough, until = last_of(witness) + 40, time.monotonic() + 60
                while last_of(witness) < enough and time.monotonic() < until:
                    time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.02 if begun else 0.005))
            os.kill(child, signal.SIGKILL)
            while (line := nursery.stdout.readline()) != "gone\n":
                assert line, "the nursery has ended"
        nursery.stdin.close()
        nursery.wait()
    witnessed = last_of(witness)
    assert witnessed > 100
    ledger = open_ledger(tmp_path / "study")
    assert ledger.connection.execute(SOUND).fetchall() == [("ok",)]
    reader = LedgerReader(ledger.connection, ledger.path)
    done = list(reader.done_indexes())
    assert done == list(range(len(done)))
    assert len(done) >= witnessed  # a last commit may have had no time to be witnessed
    results = list(reader.results())
    assert sorted(result.outputs["turn"] for result in results) == done
    assert all(len(result.observations) == 2 for result in results)
    ledger.close()


def last_of(witness):
    """How many results were committed by what was witnessed."""
    whole, _, _ = (witness.read_text() if witness.exists() else "").rpartition("\n")
    return int(whole.split()[-1]) if whole else 0


def fill(ledger, plan, order):
    for execution_index in range(len(order)):
        add(ledger, plan, order, execution_index, outputs="x" * 2000, events=[{"text": "y"}])


def test_a_full_disk_keeps_the_group_until_there_is_room(tmp_path):
    ledger, plan, order = begin(tmp_path, make_plan(replicates=500))
    pages = ledger.connection.execute("PRAGMA page_count").fetchone()[0]
    ledger.connection.execute(f"PRAGMA max_page_count = {pages + 200}")
    with pytest.raises(LedgerError, match=r"no room.*make room") as caught:
        fill(ledger, plan, order)
    assert f"fairtrial resume {tmp_path}" in str(caught.value)
    committed = ledger.committed
    for _ in range(2):  # it doesn't get worse
        with pytest.raises(LedgerError, match="no room"):
            ledger.commit()
    assert not ledger.connection.in_transaction
    reader = LedgerReader.open(tmp_path)
    assert list(reader.done_indexes()) == list(range(committed))
    ledger.connection.execute("PRAGMA max_page_count = 1000000")
    ledger.commit()
    assert ledger.committed == committed + COMMIT_RUNS
    assert list(reader.done_indexes()) == list(range(ledger.committed))
    for execution_index in range(ledger.committed, len(order)):
        add(ledger, plan, order, execution_index)
    ledger.commit()
    results = list(reader.results())
    assert len(results) == len(order)
    assert reader.connection.execute(SOUND).fetchall() == [("ok",)]
    reader.close()
    ledger.close()


NO_ROOM = """
    import resource, signal, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[2])
    from fairtrial import LedgerError
    from fairtrial.study.ledger.reader import LedgerReader
    from ledger_kit import SOUND, add, begin, make_plan
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    ledger, plan, order = begin(folder, make_plan(replicates=500))
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, most[1]))
    added = 0
    try:
        for index in range(len(order)):
            added += 1
            add(ledger, plan, order, index, outputs="x" * 2000)
    except LedgerError as error:
        print(error)
    assert ledger.committed < added < len(order)
    resource.setrlimit(resource.RLIMIT_FSIZE, most)
    ledger.commit()
    assert ledger.committed == added
    assert ledger.connection.execute(SOUND).fetchall() == [("ok",)]
    print(added)
    import os
    os._exit(0)
"""


def test_a_write_that_fails_leaves_the_ledger_unchanged(tmp_path):
    said, added = run_script(NO_ROOM, tmp_path, KITS).splitlines()
    assert re.search(r"disk is full or gone.*fairtrial resume", said)
    reader = LedgerReader.open(tmp_path)
    assert list(reader.done_indexes()) == list(range(int(added)))
    assert len(list(reader.results())) == int(added)
    reader.close()


def test_no_room_for_a_new_ledger_leaves_none(tmp_path, request):
    script = """
        import resource, signal, sys
        from pathlib import Path
        from fairtrial import LedgerError
        from fairtrial.study.ledger.writer import open_ledger
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        try:
            open_ledger(Path(sys.argv[1]))
        except LedgerError as error:
            print(error)
    """
    assert str(tmp_path / LEDGER_NAME) in run_script(script, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_another_process_has_written_is_never_written_twice(tmp_path):
    ledger, plan, order = begin(tmp_path)
    other = sqlite3.connect(tmp_path / LEDGER_NAME)
    other.execute("INSERT INTO results VALUES (0, 'x', 0, 'success', NULL, 1, 1, 0, 0, 0)")
    other.commit()
    other.close()
    add(ledger, plan, order, 0)
    with pytest.raises(LedgerError, match="another process has written"):
        ledger.commit()
    ledger.close()

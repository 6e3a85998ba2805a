"""Progress events: a callback sees what runs in this process emit."""

import pytest

from fairtrial import Study, run_study
from fairtrial.core.events import (
    HostWaitEnded,
    Phase,
    PhaseStarted,
    Remark,
    emit_to_all,
    ignore_event,
)
from fairtrial.study import Condition, RunSpec, Task

EVENTS = [PhaseStarted(Phase.PROPOSALS), Remark("half of it is done."), HostWaitEnded()]


def agent(task):
    for event in EVENTS:
        task.emit_progress(event)
    return {"x": 1}


@pytest.mark.parametrize(
    ("executor", "seen"), [("serial", EVENTS), ("threads", EVENTS), ("processes", [])]
)
def test_a_callback_gets_the_events_of_runs_in_its_own_process(tmp_path, executor, seen):
    path = tmp_path / "seen"  # worker processes have memory of their own
    path.touch()

    def note(event):
        with path.open("a") as file:
            file.write(f"{event}\n")

    study = Study("s", "s", output_dir=tmp_path / "out")
    bindings = {"default-agent": agent}
    run_study(study, agent_bindings=bindings, executor=executor, on_event=note)
    assert path.read_text() == "".join(f"{event}\n" for event in seen)


def test_a_task_that_is_made_by_hand_drops_them():
    task = Task(None, Condition("c", {}), RunSpec("r", "s", "c", "p", 1, 0, None, None))
    assert task.emit_progress is ignore_event
    assert agent(task) == {"x": 1}


def test_several_receivers_get_the_same_events_in_order():
    seen = []
    emit = emit_to_all(
        lambda event: seen.append(("first", event)), lambda event: seen.append(("second", event))
    )
    emit(EVENTS[0])
    assert seen == [("first", EVENTS[0]), ("second", EVENTS[0])]


def test_events_are_values_that_nothing_changes():
    assert PhaseStarted(Phase.PROFILE, "0.1") == PhaseStarted(Phase.PROFILE, "0.1")
    with pytest.raises(AttributeError):
        EVENTS[1].text = "another"

"""Recorded calls: written, read, and compared with the base."""

import json

import pytest
from calls_kit import Slots
from hypothesis import given, settings, strategies as st
from value_strategies import values

from fairtrial.arena import Basis, Check, Reason, record_call, write_calls
from fairtrial.arena.checks.recorded_calls import read_calls
from fairtrial.core import StudyError
from fairtrial.sandbox.wire import dump_encoded, encode

CHECK = Check(function="tools:divide", calls="cases.json", timeout_s=120)
TOOLS = """
    def divide(one, other, whole=False):
        return one // other if whole else one / other
"""


def divide(one, other, whole=False):
    return one // other if whole else one / other


def prepare(folder, calls, tools=TOOLS, **changes):
    text = calls if isinstance(calls, str) else json.dumps(calls)
    slots = Slots(folder, {"tools.py": tools, "cases.json": text})
    return slots, slots.prepare(CHECK, **changes)


def refusal(folder, calls, *args, **changes):
    with pytest.raises(StudyError) as stop:
        prepare(folder, calls, *args, **changes)
    return str(stop.value)


def test_calls_that_were_recorded_here_hold_there(tmp_path):
    path = tmp_path / "cases.json"
    recorded = [record_call(divide, 7, 2), record_call(divide, 7, 2, whole=True)]
    write_calls(path, [*recorded, record_call(divide, 1, 0)])
    slots, prepared = prepare(tmp_path, path.read_text("utf-8"))
    assert (prepared.basis, prepared.seed) == (Basis.COMPARED, None)
    assert slots.judge(prepared).rejection is None
    wrong = slots.judge(prepared, tools=TOOLS.replace("one / other", "one / (other or 1)"))
    (failure,) = wrong.rejection.failures
    assert failure.what == "tools:divide, case 3"
    assert failure.differences[0].expected == "raised ZeroDivisionError('division by zero')"
    assert failure.differences[0].actual == "1.0"


@settings(max_examples=25)  # each writes a file
@given(st.lists(st.tuples(st.lists(values, max_size=2), values), min_size=1, max_size=3))
def test_all_that_can_be_encoded_can_be_recorded(tmp_path_factory, cases):
    path = tmp_path_factory.mktemp("calls") / "cases.json"
    calls = [record_call(lambda *_, value=value: value, *args) for args, value in cases]
    write_calls(path, calls)
    read = read_calls(path.read_bytes(), (), "cases.json")
    assert [dump_encoded(call.case["args"]) for call in read] == [
        dump_encoded(encode(args)) for args, _ in cases
    ]
    assert [dump_encoded(call.expected["result"]) for call in read] == [
        dump_encoded(encode(value)) for _, value in cases
    ]


def test_what_is_not_plain_is_not_written(tmp_path):
    path = tmp_path / "cases.json"
    with pytest.raises(StudyError, match=r"call 2 can't be recorded: it holds <an object of"):
        write_calls(path, [record_call(divide, 1, 1), record_call(lambda: object())])
    assert not path.exists()


def test_plain_json_is_enough_for_plain_values(tmp_path):
    slots, prepared = prepare(tmp_path, [{"args": [6, 3], "result": 2.0}])
    assert slots.judge(prepared).rejection is None
    assert slots.judge(
        prepared, tools=TOOLS.replace("one / other", "one // other")
    ).rejection.reason == (Reason.DIFFERENT)


def test_the_base_must_agree_with_the_file(tmp_path):
    message = refusal(tmp_path, [{"args": [6, 3], "result": 2.0}, {"args": [6, 4], "result": 2}])
    assert message == (
        "check[1].calls: cases.json, call 2, divide(6, 4): result is recorded as 2, but the base "
        "gives 1.5; record it again, or fix the base"
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"output": "hello\n"}, "output is recorded as 'hello\\n', but the base gives 'hi\\n'"),
        (
            {"arguments_after": {"args": [[1]], "kwargs": {}}},
            "after the call, args[0] is recorded as 1, but",
        ),
    ],
)
def test_output_and_changed_arguments_can_be_recorded(tmp_path, more, message):
    tools = """
        def divide(items):
            print("hi")
            items.append(2)
    """
    call = {"args": [[1]], "result": None}
    assert message.partition(" is")[0] in refusal(tmp_path, [{**call, **more}], tools)
    right = {"output": "hi\n", "arguments_after": {"args": [[1, 2]], "kwargs": {}}}
    slots, prepared = prepare(tmp_path / "right", [{**call, **right}], tools)
    assert slots.judge(prepared).rejection is None
    for change in (('print("hi")', "pass"), ("append(2)", "append(3)")):
        assert slots.judge(prepared, tools=tools.replace(*change)).rejection is not None


def test_what_was_not_recorded_is_as_the_base_has_it(tmp_path):
    tools = TOOLS.replace("return", "print('hi'); return")
    slots, prepared = prepare(tmp_path, [{"args": [6, 3], "result": 2.0}], tools)
    rejection = slots.judge(prepared, tools=TOOLS).rejection
    assert rejection.failures[0].differences[0].where == "output"


def test_the_file_is_not_where_candidates_run(tmp_path):
    tools = TOOLS.replace("return", "assert not __import__('os').path.exists('cases.json'); return")
    slots, prepared = prepare(tmp_path, [{"args": [6, 3], "result": 2.0}], tools)
    assert slots.judge(prepared).rejection is None


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ("[", "cases.json isn't JSON"),
        ("{}", "must hold a list of calls"),
        ("[]", "must hold a list of calls"),
        ("[1]", "call 1: must be an object, got int"),
        ([{"args": [], "result": 1}, {"args": []}], "call 2: needs either `result` or `raises`"),
        ([{"result": 1, "raises": {}}], "needs either `result` or `raises`"),
        ([{"arg": [], "result": 1}], "'arg' isn't known"),
        ([{"args": {"a": 1}, "result": 1}], "args must be a list"),
        ([{"kwargs": [1], "result": 1}], "kwargs must be an object"),
        ([{"raises": "ValueError"}], 'such as {"type": "builtins.ValueError"'),
        ([{"result": 1, "arguments_after": [1]}], "arguments_after must be an object"),
        ([{"args": [{"$": "enum", "type": "a.B"}], "result": 1}], "can't be made again"),
    ],
)
def test_mistakes_in_the_file_are_reported(tmp_path, calls, message):
    assert message in refusal(tmp_path, calls)


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(StudyError) as stop:
        read_calls(b'[1, {"result": 1, "x": 2}, {}]', ("check[0]", "calls"), "cases.json")
    assert len(stop.value.mistakes) == 3


@pytest.mark.parametrize("name", ["missing.json", "folder", "link.json"])
def test_a_file_that_is_not_in_the_snapshot_is_refused(tmp_path, name):
    slots = Slots(tmp_path, {"tools.py": TOOLS})
    stage = slots.stage

    def with_traps(files, **more):
        slot_stage = stage(files, **more)
        (slot_stage.slot / "folder").mkdir()
        (slot_stage.slot / "link.json").symlink_to("/etc/hostname")
        return slot_stage

    slots.stage = with_traps
    with pytest.raises(StudyError, match=r"check\[1\]\.calls: .*(can't read|leads out)"):
        slots.prepare(CHECK, calls=name)

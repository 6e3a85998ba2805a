"""Problem packets: the argument of the evaluator, and resolving names."""

import pytest
from hypothesis import given, strategies as st

from fairtrial.core import StudyError
from fairtrial.study import ProblemPacket, resolve_problem
from fairtrial.study.problems.packet import ANSWER_KEYS


def test_the_evaluator_gets_the_first_of_six_keys():
    assert ANSWER_KEYS == ("candidate", "state", "answer", "solution", "final_answer", "x")


@given(st.dictionaries(st.sampled_from([*ANSWER_KEYS, "text", "other"]), st.integers()))
def test_the_evaluator_gets_the_answer_or_else_the_whole_output(output):
    packet = ProblemPacket("p", evaluator=lambda answer: answer)
    named = [output[name] for name in ANSWER_KEYS if name in output]
    assert packet.evaluate(output) == (named[0] if named else output)


def test_an_answer_of_none_is_an_answer():
    packet = ProblemPacket("p", evaluator=lambda answer: answer)
    assert packet.evaluate({"candidate": None, "answer": 3}) is None


def test_without_an_evaluator_there_is_no_verdict():
    assert ProblemPacket("p").evaluate({"answer": 3}) is None


def test_a_packet_a_mapping_and_a_name_in_the_registry_are_problems():
    packet = ProblemPacket("p", "search", "find it", {"size": 3}, {"level": 1}, len)
    given = {
        "family": "search",
        "brief": "find it",
        "payload": {"size": 3},
        "metadata": {"level": 1},
        "evaluator": len,
    }
    assert resolve_problem(packet) is packet
    assert resolve_problem({"problem_id": "p", **given}) == packet
    assert resolve_problem("p", registry={"p": packet}) is packet
    assert resolve_problem("p", registry={"p": given}) == packet
    assert resolve_problem({}).problem_id == "problem"


class OwnProblem:
    problem_id, family, brief = "own", "search", "find it"

    def evaluate(self, output):
        return len(output)


def test_any_object_with_the_right_parts_is_a_problem():
    problem = OwnProblem()
    assert resolve_problem(problem) is problem
    assert resolve_problem("own", registry={"own": problem}) is problem


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (42, "type int is no problem: it has no problem_id, family, brief, evaluate"),
        (OwnProblem, "type type is no problem"),
        ({"breif": "x"}, "breif: unknown key; did you mean 'brief'?"),
        ({"evaluator": 3}, "evaluator: must be a function"),
        ({"payload": [1]}, "payload: must be a mapping"),
    ],
)
def test_what_is_no_problem_is_reported(given, says):
    with pytest.raises(StudyError) as caught:
        resolve_problem(given)
    assert says in str(caught.value)


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(StudyError, match=r"no problem 'gpa' in the registry; did you mean 'gap'\?"):
        resolve_problem("gpa", registry={"gap": {}})
    with pytest.raises(StudyError, match="there are none"):
        resolve_problem("gap")

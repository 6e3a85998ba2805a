"""Fingerprints of studies, and the differences between two of them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from fairtrial import (
    Block,
    Constraint,
    DesignSpec,
    Factor,
    Hypothesis,
    Level,
    OutcomeSpec,
    RunBudget,
    SeedPolicy,
    Study,
    build_design,
)
from fairtrial.core import canonical_json
from fairtrial.study.ledger import differences, study_fingerprint

STUDY = Study(
    "s",
    "A study",
    factors=[
        Factor("model", "which one", levels=[Level("small", 1), Level("large", 2)]),
        Factor("depth", levels=[1, 2, 3]),
    ],
    blocks=[Block("day", ["mon", "tue"])],
    constraints=[Constraint("shallow", expression="depth < 9")],
    agent_specs=["a", "b"],
    problem_ids=["p"],
    agents={"a": {"use": "m:a", "options": {"t": 1}, "max_parallel": 2}, "b": "m:b"},
    problems={"p": {"brief": "do it", "family": "f"}},
)


def print_of(study, conditions=None):
    conditions = list(build_design(study)) if conditions is None else conditions
    return json.loads(json.dumps(study_fingerprint(study, conditions)))


def changed(study, **fields):
    return differences(print_of(STUDY), print_of(replace(study, **fields)))


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "Another"},
        {"description": "x"},
        {"authors": ["me"]},
        {"rationale": "x"},
        {"tags": ["x"]},
        {"notes": "x"},
        {"output_dir": "elsewhere"},
        {"provenance_metadata": {"a": 1}},
        {"run_budget": RunBudget(replicates=9, parallelism=4, timeout_s=3, max_cost_usd=1)},
        {"hypotheses": [Hypothesis("h", "h", "it is so")]},
        {"outcomes": [OutcomeSpec("o", primary=True)]},
        {"design_spec": DesignSpec(replicates=3, max_conditions=500)},
        {"factors": [replace(STUDY.factors[0], description="better said"), STUDY.factors[1]]},
        {"constraints": [replace(STUDY.constraints[0], description="better said")]},
        {"agents": {**STUDY.agents, "a": replace(STUDY.agents["a"], max_parallel=9)}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_changes_no_result_makes_no_difference(fields):
    assert changed(STUDY, **fields) == []


PLACE = {"base_url": "http://127.0.0.1:1/v1", "model": "m"}


def asking(agent=(), judge=(), panel=()):
    judged = {**PLACE, "rubric": "r", "judges": [{"model": "n", **dict(panel)}], **dict(judge)}
    return replace(
        STUDY,
        agents={"a": {"use": "chat", "options": {**PLACE, **dict(agent)}}, "b": "m:b"},
        problems={"p": {"brief": "b", "evaluator": {"use": "judge", "options": judged}}},
    )


@pytest.mark.parametrize("where", ["agent", "judge", "panel"])
def test_how_quickly_and_by_which_key_a_model_is_asked_makes_no_difference(where):
    paced = asking(**{where: {"requests_per_minute": 9, "retries": 1, "key_variable": "KEY"}})
    assert differences(print_of(asking()), print_of(paced)) == []
    (line,) = differences(print_of(asking()), print_of(asking(**{where: {"model": "other"}})))
    assert '"other"' in line


def test_options_of_ones_own_agents_make_a_difference_by_any_name():
    agents = {"a": {"use": "m:a", "options": {"t": 1, "retries": 5}, "max_parallel": 2}, "b": "m:b"}
    assert changed(STUDY, agents=agents) == ["agents.a.options.retries: added: 5"]


OTHER_CONDITIONS = "the design gives other conditions"
TEMPERATURE = Factor("temperature", levels=[0.1, 0.9])


@pytest.mark.parametrize(
    ("fields", "starts"),
    [
        ({"study_id": "t"}, ['study_id: "s" -> "t"']),
        ({"seed_policy": SeedPolicy(base_seed=7)}, ["seed_policy.base_seed: 0 -> 7"]),
        (
            {"factors": [TEMPERATURE, *STUDY.factors]},
            ["factors[temperature]: added: ", OTHER_CONDITIONS],
        ),
        ({"factors": STUDY.factors[1:]}, ["factors[model]: removed: ", OTHER_CONDITIONS]),
        (
            {
                "factors": [
                    replace(STUDY.factors[0], levels=[Level("small", 1), Level("large", 3)]),
                    STUDY.factors[1],
                ]
            },
            ["factors[model].levels[large].value: 2 -> 3", OTHER_CONDITIONS],
        ),
        (
            {"factors": [STUDY.factors[0], Factor("depth", levels=[1, 2, 3, 4])]},
            ["factors[depth].levels[4]: added: ", OTHER_CONDITIONS],
        ),
        (
            {"factors": STUDY.factors[::-1]},
            ['factors: order: ["model","depth"] -> ["depth","model"]', OTHER_CONDITIONS],
        ),
        (
            {"blocks": [Block("day", ["mon", "wed"])]},
            ['blocks[day].levels: ["mon","tue"] -> ["mon","wed"]', OTHER_CONDITIONS],
        ),
        (
            {"constraints": [Constraint("shallow", expression="depth < 8")]},
            ['constraints[shallow].expression: "depth < 9" -> "depth < 8"'],
        ),
        ({"agent_specs": ["a"]}, ['agent_specs: ["a","b"] -> ["a"]']),
        (
            {"agents": {**STUDY.agents, "a": {"use": "m:a", "options": {"t": 1.0}}}},
            ["agents.a.options.t: 1 -> 1.0"],
        ),
        ({"agents": {"a": STUDY.agents["a"]}}, ["agents.b: removed: "]),
        ({"condition_runner": "m:f"}, ['condition_runner: null -> "m:f"']),
        ({"design_spec": DesignSpec(randomize=True)}, ["design_spec.randomize: false -> true", ""]),
    ],
)
def test_a_change_is_reported_in_a_line(fields, starts):
    lines = changed(STUDY, **fields)
    assert len(lines) == len(starts)
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start)
        assert len(line) < 250


def test_conditions_that_change_alone_are_reported_in_words():
    conditions = list(build_design(STUDY))
    fewer = differences(print_of(STUDY, conditions), print_of(STUDY, conditions[1:]))
    assert fewer == [f"{OTHER_CONDITIONS} (a matrix file or a rule has changed)"]
    barred = [replace(conditions[0], admissible=False), *conditions[1:]]
    assert differences(print_of(STUDY, conditions), print_of(STUDY, barred)) == fewer


def test_where_a_matrix_lies_makes_no_difference_but_what_it_holds_does(tmp_path):
    def study(name, rows):
        (tmp_path / name).write_text("x\n" + "\n".join(rows))
        return Study(
            "s",
            "t",
            factors=[Factor("x", levels=["1", "2", "3"])],
            design_spec=DesignSpec("custom_matrix", matrix_path=str(tmp_path / name)),
        )

    first = print_of(study("a.csv", ["1", "2"]))
    assert differences(first, print_of(study("b.csv", ["1", "2"]))) == []
    (line,) = differences(first, print_of(study("b.csv", ["1", "3"])))
    assert line.startswith(OTHER_CONDITIONS)


values = st.sampled_from([1, 1.0, 2, True, "1", None])
studies = st.builds(
    lambda levels, names, seed, agents, option, brief, notes, replicates: Study(
        "s",
        "t",
        notes=notes,
        factors=[Factor(name, levels=[Level(f"l{i}", i) for i in levels]) for name in names],
        seed_policy=SeedPolicy(base_seed=seed),
        agent_specs=agents,
        agents={name: {"use": "m:f", "options": {"o": option}} for name in agents},
        problems={"p": {"brief": brief}},
        run_budget=RunBudget(replicates=replicates),
    ),
    st.lists(st.integers(0, 3), min_size=1, unique=True),
    st.lists(st.sampled_from("xyz"), min_size=1, unique=True),
    st.integers(0, 1),
    st.lists(st.sampled_from("ab"), min_size=1, unique=True),
    values | st.lists(values) | st.dictionaries(st.sampled_from("kl"), values),
    st.sampled_from(["one", "two"]),
    st.text(max_size=3),
    st.integers(1, 3),
)
COVERED = ("factors", "seed_policy", "agent_specs", "agents", "problems")


@given(studies, studies)
def test_two_prints_differ_exactly_if_what_they_cover_does(left, right):
    said = differences(print_of(left), print_of(right))
    texts = [canonical_json([study.to_dict()[name] for name in COVERED]) for study in (left, right)]
    assert (said == []) == (texts[0] == texts[1])
    assert differences(print_of(left), print_of(left)) == []

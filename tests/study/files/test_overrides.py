"""Overrides of a study's values: `--set path=value`."""

import pytest

from fairtrial import AgentBinding, Factor, Study, StudyError
from fairtrial.study.files import override


@pytest.fixture
def study(tmp_path):
    made = Study(
        "s",
        "s",
        factors=(Factor("style", levels=("plain", "warm")), Factor("size", levels=(1, 2))),
        agents={"a": AgentBinding("m:f", options={"model": "small"})},
    )
    object.__setattr__(made, "folder", tmp_path)
    return made


def test_values_are_read_as_yaml_and_the_rest_stays(study):
    changed = override(study, ["run_budget.replicates=3", "run_budget.fail_fast=true"])
    assert changed.run_budget.replicates == 3
    assert changed.run_budget.fail_fast is True
    assert changed.factors == study.factors
    assert changed.folder == study.folder
    assert study.run_budget.replicates == 1


def test_items_of_lists_go_by_number_or_by_name(study):
    assert override(study, ["factors[1].levels=[1, 2, 5]"]).factors[1].levels[2].value == 5
    assert override(study, ["factors.style.levels=[x, y]"]).factors[0].levels[0].value == "x"


def test_options_of_an_agent_may_be_new(study):
    agents = override(study, ["agents.a.options.model=large", "agents.a.options.n=4"]).agents
    assert agents["a"].options == {"model": "large", "n": 4}
    assert override(study, ["agents.b=m:g"]).agents["b"].use == "m:g"


def test_the_output_follows_the_id_unless_it_was_set(study):
    assert str(override(study, ["study_id=t"]).output_dir) == "artifacts/t"
    moved = override(study, ["output_dir=here"])
    assert str(override(moved, ["study_id=t"]).output_dir) == "here"


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("replicates", "not of the form path=value"),
        ("=3", "not of the form path=value"),
        ("run_budget.replicats=3", "did you mean 'replicates'"),
        ("run_budget.replicates=many", "run_budget.replicates"),
        ("run_budget.replicates=0", "must be 1 or more"),
        ("factors[7].name=x", "there are only 2 items"),
        ("factors.stile.levels=[1]", "did you mean 'style'"),
        ("title.more=3", "nothing inside"),
        ("a..b=3", "unknown key"),
        ("run_budget.replicates=[1", "YAML"),
        ("factors.style.levels=[x, x]", "factors[0]"),
        ("[]=3", "not a path"),
    ],
)
def test_what_is_wrong_is_reported(study, assignment, message):
    with pytest.raises(StudyError) as caught:
        override(study, [assignment])
    assert message in str(caught.value)
    assert str(caught.value).startswith("--set")


def test_all_that_is_wrong_is_reported_at_once(study):
    with pytest.raises(StudyError) as caught:
        override(study, ["run_budget.replicates=0", "seed_policy.strategy=x", "nothing"])
    assert len(caught.value.mistakes) == 3

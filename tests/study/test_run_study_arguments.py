"""`run_study` names a wrong study, executor or parallelism, rather than failing on its parts."""

import json

import pytest
from cli_kit import AGENTS, STUDY

from fairtrial import StudyError, dry_run_validate, load_study, run_study
from fairtrial.core import plugins


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_agents.py").write_text(AGENTS)
    (tmp_path / "study.json").write_text(json.dumps(STUDY))
    return tmp_path / "study.json"


def test_a_path_stands_for_the_study_in_its_file(path):
    by_path, by_study = dry_run_validate(path), dry_run_validate(load_study(path))
    assert by_path == by_study
    assert dry_run_validate(str(path)) == by_study


@pytest.mark.parametrize("given", [3, None, {"study_id": "s"}])
def test_what_is_no_study_is_refused_with_what_to_pass(given):
    with pytest.raises(StudyError, match="expected a Study or the path of a study file"):
        run_study(given)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"executor": object()}, "expected a name or an executor"),
        ({"parallelism": "2"}, "parallelism: expected a whole number"),
        ({"parallelism": True}, "parallelism: expected a whole number"),
    ],
)
def test_a_wrong_executor_or_parallelism_is_named(path, options, why):
    with pytest.raises(StudyError, match=why):
        run_study(path, **options)


def test_a_plug_in_that_is_no_executor_is_named(path, monkeypatch):
    load = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda group, name: object if name == "other" else load(group, name)
    )
    with pytest.raises(StudyError, match="the plug-in other is no executor"):
        run_study(path, executor="other")

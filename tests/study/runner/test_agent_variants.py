"""Factors that set an agent's options: `agents.opt.options.model`."""

from dataclasses import dataclass, field

import pytest

from fairtrial import AgentBinding, Factor, OutcomeSpec, RunBudget, Study, StudyError, run_study
from fairtrial.study.runner.agent_variants import AgentVariants


@dataclass(frozen=True)
class Guesser:
    """An agent with options, as a plug-in has them."""

    size: int = 1
    inner: dict = field(default_factory=dict)

    def __call__(self, task):
        return {"answer": self.size, "metrics": {"size": self.size + self.inner.get("more", 0)}}


def make_guesser(task, size=1, inner=None):
    return {"size": size, "more": (inner or {}).get("more", 0)}


def make_study(tmp_path, *factors, **options):
    return Study(
        "varied",
        "Varied",
        factors=factors,
        outcomes=(OutcomeSpec("size"),),
        agents={"opt": AgentBinding(use=f"{__name__}:make_guesser", options=options)},
        agent_specs=("opt",),
        run_budget=RunBudget(replicates=1),
        output_dir=tmp_path / "out",
    )


def run(study):
    return [result.outputs for result in run_study(study, show_progress=False)]


def test_a_factor_sets_an_option_of_an_agent(tmp_path):
    study = make_study(
        tmp_path,
        Factor("agents.opt.options.size", levels=(1, 2)),
        Factor("agents.opt.options.inner.more", levels=(0, 10)),
        inner={"other": 5},
    )
    outputs = {(output["size"], output["more"]) for output in run(study)}
    assert outputs == {(1, 0), (1, 10), (2, 0), (2, 10)}


def test_what_is_given_stays_as_it_is():
    options = {"inner": {"a": 1}, "size": 3}
    seen = []
    agent = AgentVariants(
        "opt", options, ("agents.opt.options.inner.b",), lambda own: seen.append(own) or len
    )
    agent.variant({"agents.opt.options.inner.b": 2})
    agent.variant({"agents.opt.options.inner.b": 2})  # made once
    agent.variant({})
    assert seen == [{"inner": {"a": 1, "b": 2}, "size": 3}, options]
    assert options == {"inner": {"a": 1}, "size": 3}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("agents.opt.options.sizes", "has no parameter of that name"),
        ("agents.other.options.size", "an agent that the study doesn't bind"),
        ("agents.opt.options.size.deep", "the option size is no mapping"),
    ],
)
def test_an_unknown_option_is_reported_before_anything_runs(tmp_path, name, message):
    study = make_study(tmp_path, Factor(name, levels=(1, 2)), size=1)
    with pytest.raises(StudyError, match=message):
        run(study)
    assert not (tmp_path / "out" / "ledger.sqlite").exists()


def test_an_agent_that_was_made_already_has_no_options_to_set(tmp_path):
    study = make_study(tmp_path, Factor("agents.opt.options.size", levels=(1, 2)))
    with pytest.raises(StudyError, match="it was made already"):
        run_study(study, agent_bindings={"opt": Guesser()}, show_progress=False)

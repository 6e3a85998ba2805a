"""The study of prompt-style.yaml, written in Python: the same conditions, run ids and seeds."""

from fairtrial import (
    Block,
    Constraint,
    Contrast,
    DesignKind,
    DesignSpec,
    Factor,
    Hypothesis,
    HypothesisDirection,
    OutcomeSpec,
    RunBudget,
    Study,
    build_design,
    plan_runs,
    validate_study,
)

STUDY = Study(
    study_id="prompt-style",
    title="Does a worked example in the prompt help?",
    description="Two prompt styles on two models at three temperatures, in two languages.",
    factors=(
        Factor("style", levels=("plain", "worked_example")),
        Factor("temperature", levels=(0.0, 0.5, 1.0)),
        Factor("model", levels=("model-8b", "model-70b")),
    ),
    blocks=(Block("language", ("en", "de")),),
    constraints=(
        Constraint(
            "greedy-small",
            "the small model repeats itself at temperature 0",
            expression='not (model == "model-8b" and temperature == 0.0)',
        ),
    ),
    design_spec=DesignSpec(DesignKind.RANDOMIZED_BLOCK),
    outcomes=(OutcomeSpec("accuracy", primary=True, sd=0.2),),
    hypotheses=(
        Hypothesis(
            "h1",
            "Examples help",
            "A worked example in the prompt raises accuracy.",
            independent_vars=("style",),
            dependent_vars=("accuracy",),
            contrast=Contrast(left="worked_example", right="plain"),
            direction=HypothesisDirection.GREATER,
            minimum_effect_of_interest=0.05,
        ),
    ),
    agent_specs=("assistant",),
    problem_ids=("arithmetic", "translation", "logic", "spelling", "dates"),
    run_budget=RunBudget(replicates=2, max_runs=1000),
)

if __name__ == "__main__":
    for mistake in validate_study(STUDY):
        print(mistake)
    for run in plan_runs(STUDY, build_design(STUDY)):
        print(run.run_id, run.condition_id, run.problem_id, run.replicate, run.seed)

"""Studies with planned looks, whose agent's answers depend on nothing but seed and problem."""

import random

from fairtrial import ProblemPacket, Study, run_study
from fairtrial.study import open_results

STYLES = ("plain", "worked")


def make_study(folder=None, *, problems=12, replicates=1, effect=0.0, plan=None, **fields):
    """A study of two styles, or of those in `styles`; `stopping` and other fields of the plan."""
    styles = fields.pop("styles", STYLES)
    hypotheses = fields.pop("hypotheses", [hypothesis("h1", "worked", "plain")])
    stopping = fields.pop("stopping", {"looks": 4, "spending": "pocock"})
    data = {
        "study_id": "s",
        "title": "Styles",
        "factors": [{"name": "style", "levels": [{"name": n, "value": n} for n in styles]}],
        "outcomes": [{"name": "score", "primary": True}],
        "hypotheses": hypotheses,
        "analysis_plans": [
            {
                "analysis_plan_id": "main",
                "hypothesis_ids": [each["hypothesis_id"] for each in hypotheses],
                "tests": ["paired_t"],
                "multiple_comparison_policy": "bonferroni",
                **({"stopping": stopping} if stopping else {}),
                **(plan or {}),
            }
        ],
        "run_budget": {"replicates": replicates},
        "agent_specs": ["a"],
        "problem_ids": [f"p{number}" for number in range(problems)],
        "provenance_metadata": {"effect": effect},
        **fields,
    }
    if folder is not None:
        data["output_dir"] = str(folder)
    return Study.from_dict(data)


def hypothesis(name, left, right, **fields):
    return {
        "hypothesis_id": name,
        "label": f"{left} beats {right}",
        "statement": f"{left} beats {right}.",
        "independent_vars": ["style"],
        "dependent_vars": ["score"],
        "contrast": {"left": left, "right": right},
        **fields,
    }


class Answer:
    """An agent: noise by seed, a level by problem, and an effect of every style but `plain`."""

    def __init__(self, effect=0.0, effects=None, before=None):
        self.effects = {"worked": effect, **(effects or {})}
        self.before = before

    def __call__(self, task):
        if self.before is not None:
            self.before(task)
        level = random.Random(task.problem.problem_id).gauss(0, 1)
        noise = random.Random(task.seed).gauss(0, 1)
        score = level + noise + self.effects.get(task.factors["style"], 0.0)
        return {"output": {}, "metrics": {"score": score}}


def go(study, agent=None, **settings):
    packets = {name: ProblemPacket(name, "t", "b") for name in study.problem_ids}
    return run_study(
        study,
        agent_bindings={"a": agent or Answer(study.provenance_metadata["effect"])},
        problem_registry=packets,
        show_progress=False,
        **settings,
    )


def looks_of(folder):
    """The looks that a ledger holds, without their times."""
    with open_results(folder) as results:
        log = results.reader.look_log()
        return [(look.number, look.runs, look.skipped, look.claims) for look in log.looks]


def decisions_of(folder):
    return [[claim.decision for claim in claims] for _, _, _, claims in looks_of(folder)]

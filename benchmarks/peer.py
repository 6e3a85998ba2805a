"""The same no-op study in design-research-experiments 0.3; run by running.py --peer PYTHON.

Needs no fairtrial: it is run by a Python that has the peer installed.

    python benchmarks/peer.py RUNS FOLDER
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from design_research_experiments import (  # type: ignore[import-not-found]
    Factor,
    FactorKind,
    Level,
    ProblemPacket,
    RunBudget,
    Study,
    resume_study,
    run_study,
)


def noop(problem_packet: object, seed: int) -> dict[str, object]:
    return {"output": {"text": "x" * 600, "answer": 1.0}}


def score(answer: float) -> dict[str, float]:
    return {"score": float(answer)}


def main() -> None:
    runs, folder = int(sys.argv[1]), Path(sys.argv[2])
    study = Study(
        study_id="bench",
        title="Benchmark",
        description="Runs that do nothing.",
        factors=(
            Factor(
                name="x",
                description="a number",
                kind=FactorKind.MANIPULATED,
                levels=tuple(Level(name=str(i), value=i) for i in range(100)),
            ),
        ),
        agent_specs=("agent",),
        problem_ids=("problem",),
        run_budget=RunBudget(replicates=runs // 100),
        output_dir=folder,
    )
    bindings = {
        "agent_bindings": {"agent": noop},
        "problem_registry": {"problem": ProblemPacket("problem", "none", "nothing", {}, {}, score)},
        "show_progress": False,
    }
    start = time.process_time()
    run_study(study, **bindings)
    ran = time.process_time()
    resume_study(study, **bindings)
    ended = time.process_time()
    print(
        json.dumps(
            {
                "cpu_us": (ran - start) / runs * 1e6,
                "resume_us": (ended - ran) / runs * 1e6,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "files": sum(1 for path in folder.rglob("*") if path.is_file()),
            }
        )
    )


if __name__ == "__main__":
    main()

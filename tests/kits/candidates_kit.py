"""A study whose runs say that they tried code candidates, with hostile texts in every field."""

from page_kit import HOSTILE, STUDY_TEXT
from run_kit import make_study, run

SAMPLES_HEAD = "candidate,benchmark,session,round,position,arm,calls,wall_s,cpu_s,is_kept\n"
DIFF = (
    "--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,2 @@\n def f(x):\n"
    "-    return sum([x for _ in range(9)])  # slow\n+    return 9 * x\n"
)


def write_samples(folder):
    lines = [SAMPLES_HEAD]
    for session in range(6):
        for turn in range(5):
            for position, arm in enumerate(("base", "candidate")):
                wall_s = (0.002 if arm == "base" else 0.001) * (1 + 0.01 * turn)
                lines.append(f"0.0,b,{session},{turn},{position},{arm},10,{wall_s},,{turn > 0}\n")
    (folder / "samples.csv").write_text("".join(lines), "utf-8")


def optimize(task):
    """An agent that tells of three candidates: a faster one, a wrong one, an equal one."""
    write_samples(task.workspace)
    common = {"lineage": 0, "kind": "initial", "min_effect": 0.02, "note": STUDY_TEXT}
    task.emit(
        "candidate", DIFF, candidate_id="0.0", name="multiply", step=0, verdict="faster",
        basis="compared", ratio=2.0, low=1.9, high=2.1, sessions=6, adopt=True, **common,
    )  # fmt: skip
    failure = {
        "check": "check[0]",
        "what": STUDY_TEXT,
        "message": STUDY_TEXT,
        "differences": [{"where": "result[0]", "expected": "expected 9", "actual": STUDY_TEXT}],
    }
    task.emit(
        "candidate", DIFF + STUDY_TEXT, candidate_id="0.1", parent_id="0.0", step=1,
        name=STUDY_TEXT, verdict="rejected", basis="compared", reason=STUDY_TEXT,
        failures=[failure], **common,
    )  # fmt: skip
    task.emit("candidate", DIFF, candidate_id="0.2", parent_id="0.1", duplicate_of="0.0", **common)
    return {"kind": "optimization", "x": 1, "said": HOSTILE}


def make_candidates_study(folder, replicates=1):
    """Run the study; return its results."""
    return run(make_study(folder, levels=(1,), replicates=replicates), optimize)

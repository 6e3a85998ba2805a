"""Makes `examples/tidy/recorded.jsonl`: a chat optimization whose model answers what stands here.

    python tests/kits/demo_recording.py

The proposer, the protocol, the checks and the clock are real; only the model is a script. Whoever
changes the project or what requests are known by has to make the record anew.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from llm_kit import KEY, KEY_VARIABLE, says, serving

from fairtrial.arena import load_problem
from fairtrial.core.events import ignore_event
from fairtrial.optimize import Optimizer
from fairtrial.optimize.journal import REPLY
from fairtrial.optimize.proposers.replay import write_records
from fairtrial.study import Condition, RunSpec, Task

EXAMPLE = Path(__file__).parents[2] / "examples" / "tidy"
RECORD = EXAMPLE / "recorded.jsonl"
LINEAGES, MOST_CANDIDATES = 2, 6

_LOOP = """\
    kept: list[str] = []
    for name in names:
        if name not in kept:
            kept.append(name)
    return kept
"""
_COUNT = """\
        counted = unique_rows(list(zip(returns, count_each(returns), strict=True)))
        item, most = max(counted, key=itemgetter(1))
"""
_IMPORTS = """\
from operator import itemgetter

from tidy.cleaning import squeeze, unique, unique_rows
"""


def replace(path, old, new):
    """A block that replaces some lines."""
    return f"FILE: {path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


UNIQUE = replace("src/tidy/cleaning.py", _LOOP, "    return list(dict.fromkeys(names))\n")
COUNTER = replace(
    "src/tidy/summary.py",
    _IMPORTS,
    "from collections import Counter\n\nfrom tidy.cleaning import squeeze, unique\n",
) + replace(
    "src/tidy/summary.py",
    _COUNT,
    "        item, most = Counter(returns).most_common(1)[0]\n",
)
SORTED = replace("src/tidy/cleaning.py", _LOOP, "    return sorted(set(names))\n")
# What it says to a prompt that has all of these signs: the first that fits.
ANSWERS = {
    ("This attempt is wrong",): "A set forgets the order in which names come, and sorting them is "
    f"another one. A dictionary keeps it, and knows its keys as quickly.\n\n{UNIQUE}",
    ("This attempt is right", "+    return list(dict.fromkeys"): "What is left is `count_each`, "
    "which counts each item anew: a Counter does it in one go. The dictionary stays.\n\n"
    f"{UNIQUE}\n{COUNTER}",
    ("propose one change", "algorithm first"): "`unique` looks through all that it has kept, for "
    f"each name. A set need not.\n\n{SORTED}",
    ("propose one change", "again and again"): "`count_each` goes through all items once for "
    "each of them; a Counter goes through them once. Of equal counts it names the item that came "
    f"first, too.\n\n{COUNTER}",
    (): "NO CHANGE. I see nothing more to gain here.",
}


def answer(handler, seen, server):
    """What the model says."""
    prompt = seen.body["messages"][-1]["content"]
    asked = prompt.partition("# What is wanted")[2].lower()
    text = next(
        text for signs, text in ANSWERS.items() if all(sign.lower() in asked for sign in signs)
    )
    usage = {"prompt_tokens": len(prompt) // 3, "completion_tokens": len(text) // 3}
    says(text, usage)(handler, seen, server)


def copy_example(folder):
    """The project in a repository of its own."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    who = ["-c", "user.name=demo", "-c", "user.email=demo@localhost"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "As it was"]):
        subprocess.run(["git", *words], cwd=folder, check=True, timeout=60)
    return folder


def make_record(path):
    """Let the scripted model optimize the project, and write down what it said."""
    os.environ[KEY_VARIABLE] = KEY
    with tempfile.TemporaryDirectory() as folder, serving(*[answer] * 20) as server:
        problem = load_problem(copy_example(Path(folder, "tidy")) / "problem.yaml")
        options = {
            "base_url": server.base_url,
            "model": "a-script",
            "key_variable": KEY_VARIABLE,
            "answer": "search_replace",
            "prices": {"a-script": (1.0, 4.0)},
        }
        agent = Optimizer(
            "chat", options, lineages=LINEAGES, max_candidates=MOST_CANDIDATES, unsandboxed=True
        )
        spec = RunSpec("run-0", "demo", "cond-0", "tidy", 1, 0, None, None)
        task = Task(None, Condition("cond-0", {}), spec)
        asyncio.run(agent.optimize(problem, task, ignore_event))
    replies = [each.data for each in task.journal.entries() if each.kind == REPLY]
    write_records(path, sorted(replies, key=lambda each: each["key"]))


if __name__ == "__main__":
    make_record(RECORD)

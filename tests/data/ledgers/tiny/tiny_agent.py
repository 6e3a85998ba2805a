"""The agent and the evaluator of the study beside this file."""


def answer(task):
    """Return x + 10; emit an event and pay for a journal entry."""
    x = task.factors["x"]
    task.emit("step", f"x is {x}")
    task.journal.append("reply", {"x": x}, cost_usd=0.25, input_tokens=10, output_tokens=x)
    print(f"answering {x}")
    return {"answer": x + 10}


def score(answer):
    """Fail on the answer for x = 2."""
    if answer == 12:
        raise ValueError("can't score 12")
    return {"score": float(answer)}

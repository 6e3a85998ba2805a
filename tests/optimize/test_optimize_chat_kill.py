"""kill -9 while a model is asked, answers and is judged, and the same command again.

The instants are places in the code (`optimize_kit.mark_places`), or what the endpoint has seen and
sent by then; never times. One optimization dies several times, each time further on, before it may
finish. It has one line, so that nothing else is on its way when it dies: what the endpoint has sent
whole is then known exactly.
"""

import signal
import threading
from collections import Counter
from contextlib import closing

import pytest
from llm_kit import KEY, KEY_VARIABLE, USAGE, events, serving, start_stream
from optimize_kit import MODULE, PATIENCE_S, WORKING, OptimizeNursery, OptimizeSite
from spending_kit import spending
from test_optimize_chat import WORDS, assert_no_key, by_chat, whole
from test_optimize_kill import assert_nothing_left, die, read_result, told

from fairtrial.optimize import RequestKind
from fairtrial.study.ledger import LedgerReader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WORKING, reason="no full sandbox works here"),
]

UNUSABLE = "I would begin with the inner loop."
ANSWERS = {
    "initial": UNUSABLE,
    "initial again": whole(MODULE.format(16, 20)),  # which is wrong
    "repair": UNUSABLE,
    "repair again": whole(MODULE.format(16, 16)),
    "refine": whole(MODULE.format(8, 8)),
    "adapt": "NO CHANGE\nIt is as fast as it gets.",
}
"""What the model says: one answer for each request, and one for each complaint."""
EACH_USD = 0.004
SEEN, HALF = "seen ", "half "
"""The endpoint has got a request, and sent nothing; or sent half of the answer."""
CHAINS = {
    "up to the repair": [
        "say timing the unchanged base",
        "before setting",
        f"{SEEN}initial",
        f"{HALF}initial",
        "committed step initial/0",
        f"{HALF}initial again",
        "committed reply initial/0",
        "checking 0.0",
        "committed verdict initial-0.0.0",
        f"{SEEN}repair",
        f"{HALF}repair",
    ],
    "from the repair to the refinement": [
        "committed step repair/0",
        f"{SEEN}repair again",
        f"{HALF}repair again",
        "before reply repair/0",
        "committed reply repair/0",
        "checking 0.1",
        "waiting 0.1",
        "timing /0.1",
        "committed verdict repair-0.1.0",
        f"{HALF}refine",
        "committed reply refine/0",
    ],
    "from the refinement to the end": [
        "entered 0.2",
        "timing /0.2",
        "before verdict refine-0.2.0",
        "committed verdict refine-0.2.0",
        f"{HALF}adapt",
        "committed reply adapt/0",
        "timing final/0.2",
        "rechecking",
        "profile",
        "tables written",
        "patch",
    ],
}
UNWRITTEN = {"before reply repair/0": "repair again"}
"""Where an answer had arrived and nobody had written it down: that one is asked for again."""
assert sum(map(len, CHAINS.values())) >= 20


class Model:
    """Answers by what it is asked, as a stream; notes what it has sent, and may stop on its way.

    log: for each request its name, what it was sent, and how far the answer got: `begun`, `whole`
    hold: at which of its own instants it stops; held: it has stopped; gone: it need not wait
    busy: how many requests it is at
    """

    def __init__(self):
        self.log, self.hold, self.busy = [], "", 0
        self.held, self.gone = threading.Event(), threading.Event()
        self.changed = threading.Condition()

    def __call__(self, handler, seen, server):
        self._count(1)
        try:
            self._answer(handler, seen)
        finally:
            self._count(-1)

    def _count(self, more):
        with self.changed:
            self.busy += more
            self.changed.notify_all()

    def bill(self):
        """How many whole answers it has sent, once it knows that itself."""
        with self.changed:
            assert self.changed.wait_for(lambda: not self.busy, PATIENCE_S)
        return self.sent("whole").total()

    def _answer(self, handler, seen):
        messages = seen.body["messages"]
        kind = next(kind for kind, words in WORDS.items() if words in messages[1]["content"])
        name = kind.value + (" again" if len(messages) > 2 else "")
        entry = [name, messages, "begun"]
        self.log.append(entry)
        self._pause(f"{SEEN}{name}")
        start_stream(handler)
        parts = list(events(ANSWERS[name]))
        for number, part in enumerate(parts):
            if number == len(parts) // 2:
                self._pause(f"{HALF}{name}")
            handler.wfile.write(part)
        entry[-1] = "whole"

    def _pause(self, instant):
        if instant == self.hold:
            self.held.set()
            self.gone.wait(PATIENCE_S)
            raise ConnectionResetError  # there is nobody any more

    def sent(self, how):
        """How often which answers got that far."""
        return Counter(name for name, _, far in self.log if far == how)

    def questions(self):
        """What was asked by each name; it is the same each time."""
        asked = {}
        for name, messages, _ in self.log:
            assert asked.setdefault(name, messages) == messages
        return asked


@pytest.fixture(scope="module")
def nursery():
    with OptimizeNursery() as nursery:
        yield nursery


@pytest.fixture(scope="module", autouse=True)
def _key():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, KEY)
        yield


def words_for(server):
    return by_chat(server, "--option", "stream=true", "--lineages", "1")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, nursery):
    """What comes of it if nothing happens, and what the model was asked."""
    site, model = OptimizeSite(tmp_path_factory.mktemp("undisturbed"), nursery), Model()
    with serving(otherwise=model) as server:
        outcome = site.finish(asking=words_for(server))
    return site, outcome, model


def kill(site, model, instant, asking):
    """Let it die at a place, or when the endpoint says so; nothing of it runs on."""
    if not instant.startswith((SEEN, HALF)):
        return die(site, instant, asking=asking)
    model.hold = instant
    model.held.clear()
    model.gone.clear()
    with site.optimize("--json", asking=asking) as running:
        running.await_true(lambda _: model.held.is_set())
        running.send(signal.SIGKILL)
        assert running.end() == -signal.SIGKILL, running.err
        running.await_nobody()
        assert site.locked() == []
    model.hold = ""
    model.gone.set()
    return running


def paid(out):
    """What a study has spent so far, all attempts together, as its ledger tells."""
    with closing(LedgerReader.open(out)) as reader:
        summary = reader.summary()
        return summary.cost_usd, summary.tokens


def bill_of(answers):
    """What the endpoint takes for so many."""
    return pytest.approx(answers * EACH_USD), answers * USAGE["total_tokens"]


@pytest.mark.parametrize("chain", CHAINS)
def test_a_killed_optimization_continues_and_pays_for_no_answer_twice(
    tmp_path, nursery, undisturbed, chain, run
):
    site, model, instants = OptimizeSite(tmp_path, nursery), Model(), CHAINS[chain]
    first, expected, _ = undisturbed
    out, died, lost = site.folder / "out", [], 0
    with serving(otherwise=model) as server:
        asking = words_for(server)
        for instant in instants:
            died.append(kill(site, model, instant, asking))
            lost += instant in UNWRITTEN
            assert paid(out) == bill_of(model.bill() - lost), instant
        # What nobody has gone on with yet is told as well, by everybody.
        assert spending(run, out, tmp_path / "told") == paid(out)
        outcome = site.finish(asking=asking)
    assert spending(run, out, tmp_path / "told") == bill_of(len(ANSWERS))
    assert site.tree() == first.tree()
    assert told(outcome) == told(expected)
    assert read_result(site, "best.patch") == expected["patch"]
    # By the endpoint's own log: what it had sent whole is not asked for again. What was cut off is.
    unwritten = [UNWRITTEN[instant] for instant in instants if instant in UNWRITTEN]
    assert model.sent("whole") - Counter(unwritten) == Counter(list(ANSWERS))
    held = [instant for instant in instants if instant.startswith((SEEN, HALF))]
    assert model.sent("begun") == Counter(instant[len(SEEN) :] for instant in held)
    # Who goes on asks the very same: a complaint is about the answer that was there.
    asked = model.questions()
    for kind in ("initial", "repair"):
        *before, complaint = asked[f"{kind} again"]
        assert before == [*asked[kind], {"role": "assistant", "content": UNUSABLE}]
        assert "no fenced block" in complaint["content"]
    assert_nothing_left(site, died)
    assert_no_key(site.folder)


def test_an_undisturbed_chat_passes_all_instants(undisturbed):
    site, outcome, model = undisturbed
    instants = {instant for chain in CHAINS.values() for instant in chain}
    held = {f"{how}{name}" for how in (SEEN, HALF) for name in ANSWERS}
    assert instants <= set(site.places()) | held
    assert model.sent("whole") == Counter(list(ANSWERS))
    assert (outcome["best"], outcome["cost_usd"]) == ("0.2", pytest.approx(6 * EACH_USD))
    kinds = [row[4] for row in site.tree()]
    assert kinds == [RequestKind.INITIAL, RequestKind.REPAIR, RequestKind.REFINE]

"""Every proposer of ours keeps what the base class promises."""

import pytest
from llm_kit import KEY, KEY_VARIABLE, says, serving
from optimize_kit import WORKING, make_repository

from fairtrial import Candidate, CodeProblem
from fairtrial.arena import ArenaSettings, Check, open_arena
from fairtrial.optimize import Brief, Proposer, Reply, Request, RequestKind
from fairtrial.optimize.proposers.chat.proposer import Chat
from fairtrial.optimize.proposers.command.proposer import CommandProposer
from fairtrial.optimize.proposers.function import FunctionProposer
from fairtrial.optimize.proposers.patches import PatchesProposer
from fairtrial.optimize.proposers.replay import Replay, write_records
from fairtrial.optimize.replies import make_record
from fairtrial.testing.proposers import FIRST, SLOW, ProposerConformance
from fairtrial_codemod.proposer import CodemodProposer

DIFF = (
    "--- a/src/unique.py\n+++ b/src/unique.py\n@@ -1 +1 @@\n-def unique(items):\n+def u(items):\n"
)
FAST = "def unique(items):\n    return list(dict.fromkeys(items))\n"


def propose(brief, request):
    return {"src/unique.py": FAST}


class TestFunction(ProposerConformance):
    @pytest.fixture
    def proposer(self):
        return FunctionProposer(f"{__name__}:propose")


class TestPatches(ProposerConformance):
    @pytest.fixture
    def proposer(self, tmp_path):
        (tmp_path / "found").mkdir()
        (tmp_path / "found/one.diff").write_text(DIFF)
        return PatchesProposer("found")


class TestReplay(ProposerConformance):
    @pytest.fixture
    def proposer(self, tmp_path):
        reply = Reply((Candidate("one", diff=DIFF),))
        write_records(tmp_path / "kept.jsonl", [make_record(FIRST, reply)])
        return Replay("kept.jsonl")


class TestReplayOfAnother(ProposerConformance):
    @pytest.fixture
    def proposer(self, tmp_path):
        write_records(tmp_path / "kept.jsonl", [])
        return Replay("kept.jsonl", most_at_once=2)


class TestCodemod(ProposerConformance):
    @pytest.fixture
    def proposer(self):
        return CodemodProposer()


class TestChat(ProposerConformance):
    @pytest.fixture
    def proposer(self, monkeypatch):
        monkeypatch.setenv(KEY_VARIABLE, KEY)
        answer = says(f"FILE: src/unique.py\n```python\n{FAST}```\n")
        with serving(otherwise=answer) as server:
            yield Chat(server.base_url, "mine", KEY_VARIABLE, prices={"mine": (1.0, 2.0)})


class TestChatThatRefuses(ProposerConformance):
    @pytest.fixture
    def proposer(self):
        with serving(otherwise=says("I don't know.")) as server:
            yield Chat(server.base_url, "mine")


@pytest.mark.slow
class TestCommand(ProposerConformance):
    @pytest.fixture
    def proposer(self):
        return CommandProposer(("sh", "-c", "echo '# faster' >> src/unique.py"), cost_usd=0.5)

    @pytest.fixture
    def use(self, proposer, tmp_path):
        top = make_repository(tmp_path / "repo", {"src/unique.py": SLOW})
        runs = "import sys; sys.path.insert(0, 'src'); import unique"
        check = Check(command=("{python}", "-c", runs))
        problem = CodeProblem("unique", check=(check,), folder=top)
        settings = ArenaSettings(unsandboxed=not WORKING, lock_folder=tmp_path, warm=False)

        def use(work):
            import anyio

            async def run():
                async with open_arena(problem, slots=1, settings=settings) as arena:
                    return await work(await proposer.open(arena.make_workshop()))

            return anyio.run(run)

        return use


# -- the base class --


class Silent(Proposer):
    async def propose(self, brief, request):
        return Reply(refusal="nothing")


def test_a_proposer_needs_no_more_than_propose():
    import anyio

    silent, brief = Silent(), Brief("p", "", {})
    assert (silent.name, silent.most_at_once, silent.can_batch) == ("Silent", 1, False)
    assert all(silent.can(kind) for kind in RequestKind)
    assert silent.estimate(brief).tokens == 0
    assert anyio.run(silent.open, None) is silent
    assert anyio.run(silent.count_first_proposals, brief) is None
    request = Request(RequestKind.INITIAL, 0, 0)
    assert anyio.run(silent.propose_in_parts, brief, request, None, None).refusal == "nothing"
    assert anyio.run(silent.close) is None


def test_without_propose_there_is_no_proposer():
    class Idle(Proposer):
        pass

    with pytest.raises(TypeError, match="propose"):
        Idle()

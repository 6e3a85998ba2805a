"""The outcome of an attack, read from its judgement or its measurement."""

from __future__ import annotations

import re

from fairtrial.arena import Judgement, Measurement, Rejection, Verdict
from fairtrial.testing.cheats.attack import Attack, Harm
from fairtrial.testing.cheats.facts import list_texts
from fairtrial.testing.cheats.outcomes import AttackOutcome

_LEAK = re.compile(r"(?:RuntimeError: |^)FAIRTRIAL-LEAK (.+)", re.M)


def find_leak(judgement: Judgement) -> str:
    """Return what a rejection quotes from outside of the slot; empty if it quotes nothing."""
    for text in list_texts(judgement):
        match = _LEAK.search(text)
        if match:
            return match[1].strip()
    return ""


def conclude_untimed(attack: Attack, judgement: Judgement) -> tuple[AttackOutcome, str]:
    """Return the outcome of an attack that passed its checks and isn't timed."""
    if attack.harm == Harm.LEAK:
        return AttackOutcome.NO_GAIN, "it found nothing, and behaved like the base"
    if attack.harm == Harm.SPEED or attack.needs_clock:
        return AttackOutcome.NO_GAIN, "it passed; nothing was timed"
    if attack.files and judgement.not_exercised:
        named = ", ".join(judgement.not_exercised)
        return AttackOutcome.NO_GAIN, f"the verdict names what no check imported: {named}"
    if judgement.duplicate_of:
        return AttackOutcome.ACCEPTED_WRONG, f"as a duplicate of '{judgement.duplicate_of}'"
    return AttackOutcome.ACCEPTED_WRONG, "it passed all checks"


def conclude_timed(attack: Attack, result: Measurement | Rejection) -> tuple[AttackOutcome, str]:
    """Return the outcome of an attack that was timed."""
    if isinstance(result, Rejection):
        is_ours = result.reason.value == "evaluator"
        return AttackOutcome.NOT_REACHED if is_ours else AttackOutcome.REJECTED, result.message
    figures = result.speed_text or "too few sessions"
    if result.adopt:
        return AttackOutcome.WON, f"adopted: {figures}"
    if result.vetoes and result.verdict == Verdict.FASTER:
        return AttackOutcome.VETOED, f"{figures}; {result.vetoes[0]}"
    detail = f"{result.verdict.value}: {figures}"
    is_wrong = attack.harm == Harm.WRONG
    if result.verdict == Verdict.INCONCLUSIVE and not result.speed_text and not is_wrong:
        return AttackOutcome.NOT_REACHED, "too few sessions to tell: the machine was too busy"
    return AttackOutcome.ACCEPTED_WRONG if is_wrong else AttackOutcome.NO_GAIN, detail

"""How often the timing test is wrong, what it finds and when: on simulated clocks, in full.

Each noise model is a machine (`tests/kits/simulated_clock.py`), sample by sample; each row of the
first tables is 20,000 comparisons on it. Beside them, on the same clocks, methods that don't work.
Exit code 1 if a figure misses its goal.

    python benchmarks/statistics.py             # 15 s; Markdown
    python benchmarks/statistics.py --runs 500  # a quick look; so few miss goals by chance
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from scipy import special

from fairtrial.arena.timing.stats.sequential import LOOKS, intervals
from fairtrial.core.sequential.confidence_sequence import running_intervals

sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "tests" / "kits"))
sys.path.append(str(Path(__file__).resolve().parent))
from dependent_sessions import DEPENDENT
from simulated_clock import (
    CLAIMS,
    NOISES,
    Noise,
    draw_autocorrelated,
    draw_blocks,
    draw_sessions,
    draw_statistics,
    judge,
    stop,
)

import recorded_noise

SEED = 7
RATIOS = (1.02, 1.03, 1.05, 1.10)
PERCENTS = [f"{ratio - 1:.0%}" for ratio in RATIOS]
MIN_EFFECT = 0.02
BLOCK = 300
"""Samples of each arm where all of the base's come first."""
POOLED_SESSIONS = 24
FOR_COMPARISON = 4_000
"""Runs of the methods that don't work: what is wrong with them shows in fewer."""
AUTOCORRELATED_CASES = (
    (0.015, 0.02, 0.05),
    (0.05, 0.02, 0.05),
    (0.015, 0.0, 0.05),
    (0.015, 0.02, 0.01),
    (0.05, 0.02, 0.01),
)
"""Session spreads, minimum effects and alphas."""
BUDGETS = (6, 10, 16)
"""Sessions after which the budget ends."""
SPREADS = (0.005, 0.012, 0.017, 0.025, 0.04)


# What is to be reached; powers and numbers of sessions are for alpha 0.05.
GOALS: dict[tuple[str, float], float] = {
    ("false positives", 0.05): 0.055,
    ("false positives", 0.01): 0.012,
    ("power", 1.03): 0.95,
    ("power", 1.05): 0.99,
    ("sessions", 1.03): 13.0,
    ("sessions", 1.05): 8.5,
    ("sessions", 1.10): 6.5,
    ("sessions", 1.0): 24.0,
}
RECORDED_HEADS = ("workload", "s per session", "spread", "false positives", "differences alone")
RECORDED_HEADS += ("equal", *PERCENTS[:3])
RECORDED_BLOCK = 12
"""How many successive sessions are drawn together."""
AUTOCORRELATED = {0.0: 0.05, 0.2: 0.055, 0.4: 0.055, 0.6: 0.06, 0.8: 0.15}
"""The most false claims by the autocorrelation of sessions, with the minimum effect of 2 %."""

Drawn = dict[str, np.ndarray]


class Study:
    """Prints tables, and keeps what misses its goal."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def check(self, what: str, value: float, least: float = -np.inf, most: float = np.inf) -> None:
        if not least <= value <= most:
            self.missed.append(f"{what}: {value:.4f}, goal {least:g} to {most:g}")

    def tell_equal(self, drawn: Drawn, alpha: float) -> None:
        """Equal code: false positives, equivalence."""
        most = GOALS["false positives", alpha]
        rows = []
        for name, statistics in drawn.items():
            found = judge(statistics, 1.0, alpha=alpha, min_effect=MIN_EFFECT)
            alone = judge(statistics, 1.0, alpha=alpha, min_effect=0.0)
            for each in (found, alone):
                self.check(f"false positives, {name}, {alpha}", each.false, most=most)
            self.check(f"coverage, {name}, {alpha}", found.coverage, least=1 - alpha)
            if alpha == 0.05:
                self.check(f"sessions, {name}", found.mean_sessions, most=GOALS["sessions", 1.0])
            shares = (found.spread, found.false, alone.false, found.equivalent)
            row = [name, *(percent(share, 2) for share in shares), f"{found.mean_sessions:.1f}"]
            rows.append([*row, percent(found.coverage, 2), percent(alone.coverage, 2)])
        goals = ["**goal**", "1.2-1.7 %", *[f"≤ {100 * most:.1f} %"] * 2, ""]
        goals += ["≤ 24" if alpha == 0.05 else "", f"≥ {1 - alpha:.0%}", ""]
        print(
            f"### Equal code, alpha {alpha}\n\n"
            "Differences alone: the same with a minimum effect of 0, so that no comparison ends as "
            "equivalent, and all of alpha is used.\n"
        )
        heads = "noise|session spread|false positives|differences alone|equivalent|mean sessions"
        heads += "|coverage at stopping|differences alone"
        print_table(heads.split("|"), [*rows, goals])

    def tell_faster(self, drawn: Drawn, alpha: float) -> None:
        """Faster code: what is found, what is adopted, and when."""
        rows = []
        for name, statistics in drawn.items():
            row, coverage, wrong = [name], 1.0, 0.0
            for ratio in RATIOS:
                found = judge(statistics, ratio, alpha=alpha, min_effect=MIN_EFFECT)
                coverage, wrong = min(coverage, found.coverage), max(wrong, found.false)
                sessions = found.mean_sessions
                row.append(f"{cut(found.faster)} / {cut(found.adopt)} / {sessions:.2f}")
                self.check(f"coverage, {ratio}, {name}", found.coverage, least=1 - alpha)
                if alpha == 0.05:
                    least = GOALS.get(("power", ratio), 0.0)
                    most = GOALS.get(("sessions", ratio), np.inf)
                    self.check(f"power, {ratio}, {name}", found.faster, least=least)
                    self.check(f"sessions, {ratio}, {name}", sessions, most=most)
            rows.append([*row, percent(wrong, 2), percent(coverage, 2)])
        figures = ["≥ 95 / reported / ≤ 13", "≥ 99 / reported / ≤ 8.5", "≤ 6.5 sessions"]
        goals = ["**goal**", "reported", *(figures if alpha == 0.05 else ["", "", ""])]
        print(f'### Faster code, alpha {alpha}: % "faster" / % "adopt" / mean sessions\n')
        heads = ["noise", *PERCENTS, 'most "slower"', "least coverage at stopping"]
        print_table(heads, [*rows, [*goals, "", f"≥ {1 - alpha:.0%}"]])

    def tell_models(self, runs: int) -> None:
        """Noise models that were fitted to sessions of real machines: errors and power."""
        rows = []
        for index, model in enumerate(recorded_noise.read_models()):
            name = f"{model['workload']}, load {model['load']:g}"
            drawn = recorded_noise.draw(model, runs, LOOKS[-1], SEED + index)
            rows.append([name, *self._judge_recorded(name, drawn, model["session_s"], {0.0, 0.02})])
        print('### Models of recorded sessions, alpha 0.05: % "equivalent" or "faster" / seconds\n')
        print_table(RECORDED_HEADS, rows)

    def tell_recorded(self, runs: int) -> None:
        """Sessions that were taken on a real machine, drawn again: errors and power.

        By differences alone, what base and candidate of a recording differ by is a difference; so
        the goal for these is checked with the recording's mean taken off.
        """
        rows = []
        for index, entry in enumerate(recorded_noise.read_recordings()):
            model = recorded_noise.fit(entry)
            values = np.asarray(entry["values"])
            name = f"{entry['workload']}, load {entry['load_before']:g}"
            for what, taken, goals in (
                (f"mean {model['mean']:+.2%} ± {model['standard_error']:.2%}", values, {0.02}),
                ("mean taken off", values - values.mean(), {0.0, 0.02}),
            ):
                drawn = recorded_noise.draw_again(
                    taken, runs, LOOKS[-1], RECORDED_BLOCK, SEED + index
                )
                told = self._judge_recorded(f"{name}, {what}", drawn, model["session_s"], goals)
                rows.append([f"{name}, {what}", *told])
        print(
            f"### Recorded sessions, drawn in blocks of {RECORDED_BLOCK}, alpha 0.05: "
            '% "equivalent" or "faster" / mean seconds\n'
        )
        print_table(RECORDED_HEADS, rows)

    def _judge_recorded(
        self, name: str, drawn: np.ndarray, session_s: float, goals: set[float]
    ) -> list[str]:
        """Judge sessions of equal code, and with true effects; return the cells of a row.

        goals: the minimum effects with which false positives have their goal
        """
        row = [f"{session_s:.2f}", percent(float(np.std(drawn)), 2)]
        equal = {least: judge(drawn, 1.0, alpha=0.05, min_effect=least) for least in (0.02, 0.0)}
        for least, found in equal.items():
            row.append(percent(found.false, 2))
            if least in goals:
                what = f"false positives, {name}, minimum effect {least:g}"
                self.check(what, found.false, most=GOALS["false positives", 0.05])
        row.append(f"{cut(equal[0.02].equivalent)} / {equal[0.02].mean_sessions * session_s:.1f}")
        for ratio in RATIOS[:3]:
            found = judge(drawn, ratio, alpha=0.05, min_effect=MIN_EFFECT)
            row.append(f"{cut(found.faster)} / {found.mean_sessions * session_s:.1f}")
        return row

    def tell_slower(self, drawn: Drawn) -> None:
        """Slower code is found as faster code is."""
        rows = []
        for name, statistics in drawn.items():
            row, coverage, wrong = [name], 1.0, 0.0
            for ratio in RATIOS:
                found = judge(statistics, 1 / ratio, alpha=0.05, min_effect=MIN_EFFECT)
                coverage, wrong = min(coverage, found.coverage), max(wrong, found.false)
                row.append(f"{cut(found.slower)} / {found.mean_sessions:.2f}")
                self.check(f"coverage, 1/{ratio}, {name}", found.coverage, least=0.95)
            rows.append([*row, percent(wrong, 2), percent(coverage, 2)])
        print('### Slower code, alpha 0.05: % "slower" / mean sessions\n')
        heads = ["noise", *PERCENTS, 'most "faster"', "least coverage at stopping"]
        print_table(heads, rows)

    def tell_anytime(self, drawn: Drawn) -> None:
        """The confidence sequence, looked at after every session."""
        rows = []
        for name, statistics in drawn.items():
            row = [name]
            for alpha in (0.05, 0.01):
                low, high = running_intervals(statistics, alpha)
                missed = float(np.mean(np.any((low > 0) | (high < 0), axis=1)))
                self.check(f"confidence sequence, {name}, {alpha}", missed, most=alpha)
                row.append(percent(missed, 2))
            rows.append(row)
        print("### Confidence sequence: misses at any of sessions 2 to 46\n")
        print_table(["noise", "alpha 0.05", "alpha 0.01"], [*rows, ["**goal**", "≤ 5 %", "≤ 1 %"]])

    def tell_autocorrelated(self, runs: int) -> None:
        """Equal code in sessions that resemble each other: false claims and coverage."""
        rows = []
        for spread, min_effect, alpha in AUTOCORRELATED_CASES:
            row = [f"{spread:.1%}", f"{min_effect:.0%}", f"{alpha}"]
            for rho, most in AUTOCORRELATED.items():
                drawn = draw_autocorrelated(rho, runs, SEED, spread)
                found = judge(drawn, 1.0, alpha=alpha, min_effect=min_effect)
                if min_effect == MIN_EFFECT and alpha == 0.05:
                    self.check(f"autocorrelation {rho}, spread {spread}", found.false, most=most)
                row.append(f"{100 * found.false:.2f} / {100 * found.coverage:.1f}")
            rows.append(row)
        plain = [judge_independent(draw_autocorrelated(rho, runs, SEED)) for rho in AUTOCORRELATED]
        row = ["1.5%, as if independent", "2%", "0.05"]
        rows.append([*row, *(f"{100 * rate:.2f}" for rate in plain)])
        print("### Autocorrelated sessions, equal code: % false claims / % coverage at stopping\n")
        heads = ["session spread", "minimum effect", "alpha"]
        heads += [f"rho {rho:g}" for rho in AUTOCORRELATED]
        goals = [f"≤ {100 * most:g}" for most in AUTOCORRELATED.values()]
        print_table(heads, [*rows, ["**goal**", "2%", "0.05", *goals]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000, help="for each noise model")
    runs = parser.parse_args().runs
    started = time.process_time()
    noises = enumerate(NOISES.values())
    drawn = {each.name: draw_statistics(each, runs, SEED + index) for index, each in noises}
    print(f"{runs} comparisons for each noise model; looks at {LOOKS} sessions; seed {SEED}.\n")
    study = Study()
    for alpha in (0.05, 0.01):
        study.tell_equal(drawn, alpha)
        study.tell_faster(drawn, alpha)
    study.tell_slower(drawn)
    study.tell_anytime(drawn)
    study.tell_autocorrelated(runs)
    tell_dependent(runs)
    study.tell_models(runs)
    study.tell_recorded(runs)
    tell_budgets(runs)
    tell_spreads(min(runs, FOR_COMPARISON))
    tell_others(min(runs, FOR_COMPARISON))
    print("\n".join(study.missed) or "All goals are met.")
    print(f"CPU time: {time.process_time() - started:.0f} s")
    return 1 if study.missed else 0


def tell_budgets(runs: int) -> None:
    """Faster code in independent sessions: what small budgets find."""
    drawn = draw_autocorrelated(0.0, runs, SEED)
    rows = []
    for budget in (*BUDGETS, LOOKS[-1]):
        row = [str(budget)]
        for ratio in RATIOS:
            found = judge(drawn[:, :budget], ratio, alpha=0.05, min_effect=MIN_EFFECT)
            row.append(f"{cut(found.faster)} / {found.mean_sessions:.2f}")
        rows.append(row)
    print('### Small budgets, independent sessions, alpha 0.05: % "faster" / mean sessions\n')
    print_table(["sessions at most", *PERCENTS], rows)


def tell_dependent(runs: int) -> None:
    """Equal code in sessions that depend on each other in other ways: false claims."""
    rows = []
    for name, draw in DEPENDENT.items():
        drawn = draw(runs, SEED)
        rates = (
            judge(spread * drawn, 1.0, alpha=0.05, min_effect=MIN_EFFECT).false
            for spread in (0.015, 0.05)
        )
        independent = (judge_independent(spread * drawn) for spread in (0.015, 0.05))
        rows.append([name, *(percent(rate) for rate in (*rates, *independent))])
    print("### Other dependent sessions, equal code, alpha 0.05: false claims\n")
    heads = ["sessions", "spread 1.5%", "spread 5%", "as if independent, 1.5%", "5%"]
    print_table(heads, rows)


def judge_independent(statistics: np.ndarray) -> float:
    """Return the rate of false claims if sessions are taken as independent."""
    undecided = np.ones(len(statistics), dtype=bool)
    false = 0
    margin = np.log1p(MIN_EFFECT)
    for sessions in LOOKS:
        low, high = intervals(statistics[:, :sessions], 0.05)
        equivalent = (-margin < low) & (high < margin)
        false += int(np.sum(undecided & ~equivalent & ((low > 0) | (high < 0))))
        undecided &= ~equivalent & (low <= 0) & (high >= 0)
    return false / len(statistics)


def tell_spreads(runs: int) -> None:
    """Machines quieter and noisier than those of the spec."""
    rows = []
    for spread in SPREADS:
        noise = Noise("process", jitter=spread / 3, process=spread / 1.5)
        statistics = draw_statistics(noise, runs, SEED)
        equal = judge(statistics, 1.0, alpha=0.05, min_effect=MIN_EFFECT)
        row = [percent(equal.spread, 2), percent(equal.false, 2)]
        row.append(f"{cut(equal.equivalent)} / {equal.mean_sessions:.1f}")
        for ratio in RATIOS:
            found = judge(statistics, ratio, alpha=0.05, min_effect=MIN_EFFECT)
            row.append(f"{cut(found.faster)} / {cut(found.adopt)} / {found.mean_sessions:.1f}")
        rows.append(row)
    print(f"### Quieter and noisier machines, alpha 0.05 (process effect, {runs} runs)\n")
    heads = ["session spread", "false positives", "equal code: % equivalent / sessions"]
    heads += [f"{effect}: faster / adopt / sessions" for effect in PERCENTS]
    print_table(heads, rows)


def tell_others(runs: int) -> None:
    """Methods that don't work, on the same clocks: how often they see a difference."""
    rows: dict[str, list[str]] = {}
    for index, noise in enumerate(NOISES.values()):
        rng = np.random.default_rng(SEED + index)
        blocks = in_parts(draw_blocks, noise, rng, runs, BLOCK)
        sessions = in_parts(draw_sessions, noise, rng, runs, LOOKS[-1])
        for method, rule, (base, candidate) in (
            ("blocks, Welch t", welch, blocks),
            ("blocks, medians 5 % apart", medians_apart, blocks),
            ("blocks, minimum 5 % apart", minima_apart, blocks),
            ("pooled rounds, t", pooled, sessions),
            ("peeking, t at each look", peeking, sessions),
            ("**sessions, group-sequential t**", sequential, sessions),
        ):
            cell = f"{100 * np.mean(rule(base, candidate, 1.0) != 0):.1f}"
            for ratio in (1.02, 1.05, 1.10):
                cell += f" / {100 * np.mean(rule(base, candidate, ratio) < 0):.0f}"
            rows.setdefault(method, [method]).append(cell)
    print(
        f"### What doesn't work, on the same clocks (alpha 0.05, {runs} runs)\n\n"
        "% false positives with equal code / % that find a true 2 / 5 / 10 %. "
        f"Blocks: {BLOCK} samples of the base in one process, then {BLOCK} of the candidate in "
        f"another. Pooled: the rounds of {POOLED_SESSIONS} sessions as if independent.\n"
    )
    print_table(["method", *NOISES], rows.values())


def in_parts(
    draw: Callable[[Noise, np.random.Generator, int, int], tuple[np.ndarray, np.ndarray]],
    noise: Noise,
    rng: np.random.Generator,
    runs: int,
    size: int,
) -> tuple[np.ndarray, np.ndarray]:
    parts = [draw(noise, rng, min(250, runs - at), size) for at in range(0, runs, 250)]
    return np.concatenate([one for one, _ in parts]), np.concatenate([other for _, other in parts])


def welch(base: np.ndarray, candidate: np.ndarray, ratio: float) -> np.ndarray:
    """-1 where Welch's t test says faster, 1 where slower, 0 where it sees nothing."""
    old, new = np.exp(base), np.exp(candidate) / ratio
    error_old, error_new = (np.var(each, axis=1, ddof=1) / BLOCK for each in (old, new))
    error = error_old + error_new
    df = error**2 * (BLOCK - 1) / (error_old**2 + error_new**2)
    t = (new.mean(axis=1) - old.mean(axis=1)) / np.sqrt(error)
    return significant(t, df)


def medians_apart(base: np.ndarray, candidate: np.ndarray, ratio: float) -> np.ndarray:
    return apart(np.median(candidate, axis=1) - np.median(base, axis=1) - np.log(ratio))


def minima_apart(base: np.ndarray, candidate: np.ndarray, ratio: float) -> np.ndarray:
    return apart(np.min(candidate, axis=1) - np.min(base, axis=1) - np.log(ratio))


def pooled(base: np.ndarray, candidate: np.ndarray, ratio: float) -> np.ndarray:
    rounds = (candidate - base)[:, :POOLED_SESSIONS, 1:].reshape(len(base), -1) - np.log(ratio)
    return significant(*one_sample(rounds))


def peeking(base: np.ndarray, candidate: np.ndarray, ratio: float) -> np.ndarray:
    """An ordinary t test after 6, 10, 16, ... sessions, until it is significant."""
    statistics = np.median((candidate - base)[:, :, 1:], axis=2) - np.log(ratio)
    said = np.zeros(len(base))
    for sessions in LOOKS:
        now = significant(*one_sample(statistics[:, :sessions]))
        said = np.where(said == 0, now, said)
    return said


def sequential(base: np.ndarray, candidate: np.ndarray, ratio: float) -> np.ndarray:
    statistics = np.median((candidate - base)[:, :, 1:], axis=2) - np.log(ratio)
    claims = stop(statistics, alpha=0.05, min_effect=MIN_EFFECT).claims
    sign = np.array([{"faster": -1, "slower": 1}.get(claim, 0) for claim in CLAIMS])
    return sign[claims]


def one_sample(values: np.ndarray) -> tuple[np.ndarray, float]:
    count = values.shape[1]
    return values.mean(axis=1) / (values.std(axis=1, ddof=1) / np.sqrt(count)), count - 1


def significant(t: np.ndarray, df: np.ndarray | float) -> np.ndarray:
    return np.where(2 * special.stdtr(df, -np.abs(t)) < 0.05, np.sign(t), 0)


def apart(logs: np.ndarray) -> np.ndarray:
    return np.where(np.abs(logs) > np.log(1.05), np.sign(logs), 0)


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def cut(share: float) -> str:
    """In per cent, without the sign; rounded down, so that 100 is all of them."""
    return f"{np.floor(1000 * share + 1e-9) / 10:.1f}"


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()


if __name__ == "__main__":
    sys.exit(main())

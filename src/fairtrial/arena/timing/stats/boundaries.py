"""The constants of the group-sequential test, computed by `benchmarks/boundaries.py`.

A level is the two-sided level of the t interval at each look such that the chance that any of the
looks at 6, 10, 16, 24, 34 and 46 sessions misses the true mean is at most alpha. They come from a
seeded Monte Carlo simulation with a relative standard error under 0.1 %, and are lowered by four
standard errors to be safe.
"""

from __future__ import annotations

LEVELS: tuple[tuple[float, float], ...] = (
    (0.5, 1.844e-01),
    (0.4, 1.378e-01),
    (0.3, 9.618e-02),
    (0.2, 5.899e-02),
    (0.1, 2.642e-02),
    (0.05, 1.215e-02),
    (0.02, 4.471e-03),
    (0.01, 2.129e-03),
    (0.005, 1.023e-03),
    (0.002, 3.926e-04),
    (0.001, 1.915e-04),
    (0.0005, 9.382e-05),
    (0.0002, 3.669e-05),
    (0.0001, 1.809e-05),
    (5e-05, 8.942e-06),
    (2e-05, 3.532e-06),
    (1e-05, 1.752e-06),
    (5e-06, 8.700e-07),
    (2e-06, 3.454e-07),
    (1e-06, 1.718e-07),
    (5e-07, 8.557e-08),
    (2e-07, 3.407e-08),
    (1e-07, 1.698e-08),
    (5e-08, 8.473e-09),
    (2e-08, 3.379e-09),
    (1e-08, 1.686e-09),
)
"""(alpha, level of each look), the largest alpha first."""

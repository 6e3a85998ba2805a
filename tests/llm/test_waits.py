"""How long servers ask their clients to wait, as vendors say it."""

from datetime import UTC, datetime

import pytest

from fairtrial.llm.waits import read_wait

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m1.5s"}, 61.5),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, None),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-01-01T12:00:05Z",
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2026-01-01T12:00:45Z",
            },
            45.0,
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW.timestamp()) + 9)}, 9.0),
        (
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(1000 * int(NOW.timestamp()))},
            0.0,
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-remaining": "0"}, None),
        ({}, None),
    ],
)
def test_the_wait_is_read_from_the_headers(headers, expected):
    assert read_wait(headers, NOW) == (None if expected is None else pytest.approx(expected))


def test_a_date_is_compared_with_the_servers_own_clock():
    headers = {
        "date": "Thu, 01 Jan 2026 00:00:00 GMT",
        "retry-after": "Thu, 01 Jan 2026 00:00:05 GMT",
    }
    assert read_wait(headers, NOW) == 5.0

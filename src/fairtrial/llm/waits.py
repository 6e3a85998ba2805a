"""How long a server asks its clients to wait, by the headers that vendors use."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_EPOCH_S, _EPOCH_MS = 1e9, 1e12
"""Larger numbers are times since 1970, in seconds or milliseconds."""
_LIMITS = (
    # what is left of a limit, and when it is whole again
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)


def read_wait(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return for how many seconds a server asks to wait; None if it doesn't say.

    In this order: `retry-after-ms`; `Retry-After`, as seconds or as a date; else the longest time
    until a limit of which nothing is left is whole again. Dates are compared with the response's
    own date, if it has one, since clocks differ.
    """
    now = _read_date(headers.get("date", "")) or now or datetime.now(UTC)
    milliseconds = _read_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    if value:
        return _read_number(value) if _is_number(value) else _until(_read_date(value), now)
    return max(_resets(headers, now), default=None)


def _resets(headers: Mapping[str, str], now: datetime) -> Iterator[float]:
    """Yield when limits are whole again of which nothing is left."""
    for left_name, reset_name in _LIMITS:
        if _read_number(headers.get(left_name, "")) == 0:
            wait_s = _read_reset(headers.get(reset_name, "").strip(), now)
            if wait_s is not None:
                yield wait_s


def _read_reset(value: str, now: datetime) -> float | None:
    """Read a time: `6m0s`, `20ms`, seconds, seconds or milliseconds since 1970, or a date."""
    number = _read_number(value)
    if number is not None:
        if number >= _EPOCH_S:
            seconds = number / 1000 if number >= _EPOCH_MS else number
            return max(seconds - now.timestamp(), 0.0)
        return number
    match = _DURATION.fullmatch(value)
    if match is not None and value:
        hours, minutes, seconds_part, part = (float(group or 0) for group in match.groups())
        return hours * 3600 + minutes * 60 + seconds_part + part / 1000
    try:
        until: datetime | None = datetime.fromisoformat(value)
    except ValueError:
        until = _read_date(value)
    if until is not None and until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return _until(until, now)


def _until(date: datetime | None, now: datetime) -> float | None:
    return None if date is None else max((date - now).total_seconds(), 0.0)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_number(text: str) -> float | None:
    """Read a number of 0 or more; None for anything else, infinity included."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _read_date(text: str) -> datetime | None:
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)

"""Errors of keys and quotas that other libraries raise: nothing that an agent did."""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.core import AccessError

KEY_VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
    "cohere": "CO_API_KEY",
    "groq": "GROQ_API_KEY",
    "litellm": "the one of its provider",
}
"""Packages whose errors have the status of a model's endpoint, and the variable of their key."""
ACCESS_STATUSES = (401, 402, 403)
QUOTA_CODES = ("insufficient_quota", "billing_hard_limit_reached", "credit_balance_too_low")


def find_access_error(error: BaseException) -> str | None:
    """Return the advice for an error of a key or a quota; None if there is none in it.

    The advice is empty if the error says itself what to do.
    """
    for part in _parts(error):
        if isinstance(part, AccessError):
            return ""
        package = type(part).__module__.partition(".")[0]
        if package not in KEY_VARIABLES:
            continue
        code = str(getattr(part, "code", "") or "")
        if getattr(part, "status_code", None) in ACCESS_STATUSES or code in QUOTA_CODES:
            return f"{package} reads its key from the environment variable {KEY_VARIABLES[package]}"
    return None


def _parts(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, or all exceptions of a group."""
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _parts(part)
    else:
        yield error

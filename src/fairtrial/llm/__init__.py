"""A client for chat-completions endpoints: address, key, retries, prices."""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)

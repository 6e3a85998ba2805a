"""The proposer `chat`: prompts, conversations, and parsing of a model's answers."""

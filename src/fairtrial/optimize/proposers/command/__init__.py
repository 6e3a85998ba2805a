"""The proposer `command`: runs command-line agents in private folders."""

"""The winner, handed over: checked again, profiled, explained, and put where it is wanted."""

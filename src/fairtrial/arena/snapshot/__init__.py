"""Take a snapshot of the user's working tree as one commit in a private repository."""

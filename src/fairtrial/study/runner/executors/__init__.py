"""Where runs happen: in this process, in workers of their own, in threads."""

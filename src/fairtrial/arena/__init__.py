"""Where code candidates are judged: a pool of copies of the base, checks side by side."""

"""Where code candidates are judged: a pool of git worktrees, checks side by side."""

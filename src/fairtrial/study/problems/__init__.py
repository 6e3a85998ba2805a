"""What judges: packets, problems of every form, and what evaluators say."""

"""Who proposes: tasks, agents of every form, and what they return."""

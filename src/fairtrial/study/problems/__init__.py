"""Problems: packets, the hooks of problems, and reading what evaluators return."""

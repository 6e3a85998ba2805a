"""Private folders in which agents of proposers work on copies of the base."""

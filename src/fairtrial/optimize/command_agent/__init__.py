"""The agent `command`: runs any command-line program on the tasks of a study, in the sandbox."""

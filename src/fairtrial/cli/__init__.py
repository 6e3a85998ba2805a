"""The command line: arguments in, facades called, text and exit codes out."""

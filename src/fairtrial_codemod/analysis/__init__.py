"""Facts about Python code that can be read from its syntax tree."""

"""Small functions of different kinds, and a command, to be attacked."""

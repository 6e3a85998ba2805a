"""The name of the task; the converter writes it here."""

NAME = ""

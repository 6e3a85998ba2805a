"""Studies, explained: tests of the hypotheses, and Markdown for people."""

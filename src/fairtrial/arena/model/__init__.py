"""Records of the arena: problems, candidates, verdicts, judgements, timings."""

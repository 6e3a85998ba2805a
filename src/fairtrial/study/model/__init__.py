"""Records of a study: factors, hypotheses, runs and results, and their ids."""

"""Statistics of timing: session ratios, group-sequential tests, races, detectable effects."""

"""Sequential statistics that studies and the timing of candidates share."""

"""Processes that nobody has to trust: started, limited, watched, ended as a whole."""

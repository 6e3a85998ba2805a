"""Those who propose candidates."""

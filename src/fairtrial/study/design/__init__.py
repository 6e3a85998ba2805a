"""Designs of studies: from factors to conditions, and from conditions to planned runs."""

"""An offline proposer for fairtrial: source transformations of slow patterns.

It needs no model, key or network. `proposer.CodemodProposer` is its entry point.
"""

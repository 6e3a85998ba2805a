"""Source transformations for slow patterns, one module for each.

Each finds places in the syntax tree and returns what to write there; `analysis` answers whether
that is safe, as far as syntax shows. What syntax can't show is stated as an assumption of the
candidate, and checked by the tests of the user.
"""

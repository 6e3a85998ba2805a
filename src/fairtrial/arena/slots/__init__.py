"""Slots: working copies of the base that are leased to candidates one after another."""

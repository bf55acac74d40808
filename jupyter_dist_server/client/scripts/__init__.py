"""Finds the ranks of a script, which have no pool, and asks them why they wait."""

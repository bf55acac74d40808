"""Identical output of ranks, once, marked with its ranks; runs in the notebook's kernel."""

"""Cells in a rank: how they arrive, and how IPython runs them; runs in a rank."""

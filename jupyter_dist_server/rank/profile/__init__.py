"""Profiles of cells: how they are recorded, and what they say; runs in a rank."""

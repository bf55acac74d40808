"""Decides which GPU each rank gets; runs in the process that starts a pool."""

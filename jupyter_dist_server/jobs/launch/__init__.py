"""Starts the dispatcher, at most one; runs in whatever finds that a job waits."""

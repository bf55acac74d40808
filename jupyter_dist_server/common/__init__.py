"""Errors, paths, process identity, rank specs and pickling; runs in every process of ours."""

"""Errors, paths, rank specs, units and pickling; runs in every process of ours."""

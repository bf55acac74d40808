"""Reads what jobs have printed; runs in ``jdist``, the server and the runner."""

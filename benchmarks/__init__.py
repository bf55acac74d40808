"""Pools side by side with plain kernels and with other packages: ``python -m benchmarks``."""

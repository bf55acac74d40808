"""What runs in a rank: an IPython kernel in a process group. The one place for torch."""

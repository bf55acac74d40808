"""What runs in a rank: an IPython kernel in a process group. Only here is torch imported."""

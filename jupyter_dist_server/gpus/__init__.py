"""What GPUs there are. Knows nothing of pools."""

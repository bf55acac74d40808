"""What GPUs there are and how busy they are. Knows nothing of pools."""

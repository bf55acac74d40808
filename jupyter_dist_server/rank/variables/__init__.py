"""What variables hold, their digests and memory, and moving values; runs in a rank."""

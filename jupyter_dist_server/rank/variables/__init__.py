"""What variables hold, their digests and their memory; runs in a rank."""

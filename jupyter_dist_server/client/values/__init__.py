"""What the variables of ranks hold, and moving values; runs in any process that uses a pool."""

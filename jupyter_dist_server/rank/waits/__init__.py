"""What a rank does and waits for, reported when its pool hangs; runs in a rank."""

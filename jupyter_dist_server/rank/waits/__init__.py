"""What a rank does and waits for, told when its pool does not go on; runs in a rank."""

"""What a rank prints and displays, on its way out; runs in a rank."""

"""Rules of the machine for everybody: drained and reserved GPUs, and whose turn it is."""

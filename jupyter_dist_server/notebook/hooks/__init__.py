"""What is hooked into the notebook's shell and kernel: completion, widgets, warnings; runs there."""

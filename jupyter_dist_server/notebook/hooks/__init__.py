"""What is hooked into the notebook's shell and kernel, as completion and widgets; runs there."""

"""What is shown of a cell on ranks, and as which outputs; runs in the notebook's kernel."""

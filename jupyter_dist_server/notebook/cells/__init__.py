"""The execution of cells on ranks, while they run; runs in the notebook's kernel."""

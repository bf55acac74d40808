"""From the cells of a notebook to a script for torchrun; runs in the notebook's kernel."""

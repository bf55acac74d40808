"""What runs in the notebook's kernel: its pool, its cells, its Python API."""

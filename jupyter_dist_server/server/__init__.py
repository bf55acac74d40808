"""What runs in the Jupyter server: the extension, its REST handlers and its stream."""

"""The owner's side of pools; runs in the server, or in a notebook's kernel without one."""

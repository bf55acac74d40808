"""REST handlers of pools: their state, cells, variables and code; runs in the Jupyter server."""

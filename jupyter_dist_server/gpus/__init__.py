"""Which GPUs there are, and their metrics; runs in the server, or in a kernel without a server."""

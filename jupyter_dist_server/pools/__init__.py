"""Pools, from their owner's side; runs in the server, or in a kernel without a server."""

"""The store of a pool's process group, which the agent serves."""

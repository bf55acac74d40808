"""The nodes of a pool: how the first one's agent and those of the others work together."""

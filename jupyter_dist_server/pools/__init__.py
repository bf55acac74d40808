"""Ranks that stay alive between cells: placement, agent, rank, client, pool."""

"""How agents are started on other nodes; runs in the pool's owner, and in its first agent."""

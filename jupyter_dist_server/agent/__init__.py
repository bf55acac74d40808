"""What runs in the agent, which forks and watches a pool's ranks, and in the zygote."""

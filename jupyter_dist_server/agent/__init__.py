"""What runs in the agent, which forks and monitors the ranks of a pool, and in the zygote."""

"""Who may use which GPUs, and when; runs in the process that starts a pool, and in its agent."""

"""Who has which GPUs; runs in the process that starts a pool or a job, in agent and runner."""

"""What runs in the runner of a job, which holds its GPUs, starts it and ends it."""

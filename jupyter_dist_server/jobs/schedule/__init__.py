"""Which waiting jobs and pools start, and where; runs in the process that starts a job or a pool."""

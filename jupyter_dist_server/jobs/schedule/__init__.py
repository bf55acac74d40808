"""Which waiting jobs and pools start, and where; runs in whatever starts a job or a pool."""

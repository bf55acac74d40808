"""Which waiting jobs and pools start, and where; runs in the process that starts one."""

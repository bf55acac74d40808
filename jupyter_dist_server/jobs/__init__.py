"""Who may use which GPUs, and when: leases, and the line of those who wait for one."""

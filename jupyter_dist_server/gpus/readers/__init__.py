"""The processes that read NVML, as the process sees them that starts them; runs in that one."""

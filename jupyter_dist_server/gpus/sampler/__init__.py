"""The child process that reads NVML for everybody."""

"""The child process that reads NVML for all clients."""

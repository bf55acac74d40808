"""What GPUs there are and how busy they are; runs in the server, and in a kernel without one."""

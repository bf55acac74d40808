"""A rank's process group, and who may join it; runs in a rank."""

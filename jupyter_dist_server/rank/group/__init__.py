"""A rank's process group, and the check of its members; runs in a rank."""

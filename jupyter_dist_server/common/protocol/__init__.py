"""The types of the messages between processes: one file for each pair of processes."""

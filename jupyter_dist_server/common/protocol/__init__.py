"""The types of the messages between processes, one file for each pair; runs in both of them."""

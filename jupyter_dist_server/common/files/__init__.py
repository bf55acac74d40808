"""The open files of a process: inherited, kept for itself, in memory, and how many there may be."""

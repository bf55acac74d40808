"""Open files of a process: its own, inherited, in memory, or locked for all users to see."""

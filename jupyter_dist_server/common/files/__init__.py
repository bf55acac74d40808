"""Open files: its own, inherited, in memory, or locked for all to see; runs in every process."""

"""From what a user asks for, by a command, a script or REST, to jobs for the store."""

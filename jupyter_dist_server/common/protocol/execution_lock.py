"""What an agent says of the right to run cells."""

YOURS, WANTED = "yours", "wanted"
"""What the agent says of the turn: a client has it, or is to give it back after its cell."""

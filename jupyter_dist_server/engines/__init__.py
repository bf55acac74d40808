"""How agents are started on other nodes."""

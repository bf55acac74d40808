"""What agents on other nodes are told, and ask for; runs in agents and in what starts them."""

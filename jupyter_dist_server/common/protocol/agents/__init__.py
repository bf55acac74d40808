"""What an agent says to its clients, its ranks and its zygote; runs in all of them."""

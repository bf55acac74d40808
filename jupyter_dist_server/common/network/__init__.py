"""Who may connect: keys, peers and packet filters of sockets; runs in every process of ours."""

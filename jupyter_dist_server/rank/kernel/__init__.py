"""The kernel of a rank, as Jupyter's clients see it, and its sockets; runs in a rank."""

"""What clients and ranks say to each other, in our own Jupyter messages; runs in both of them."""

"""What processes say to each other, as types: one file for each pair of those who talk."""

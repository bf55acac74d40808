"""The output of a rank: captured, ordered and limited; runs in a rank."""

"""What the variables of a rank hold: for comparisons between ranks, and for their memory."""

"""Parking: what is on a rank's GPU moves to the host's memory, and back."""

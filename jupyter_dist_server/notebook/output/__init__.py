"""Merging the outputs of ranks for the notebook; runs in the notebook's kernel."""

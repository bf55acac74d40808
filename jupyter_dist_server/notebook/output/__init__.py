"""Merging what ranks show into what a notebook shows; runs in the notebook's kernel."""

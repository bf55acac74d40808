"""The magics; run in the notebook's kernel."""

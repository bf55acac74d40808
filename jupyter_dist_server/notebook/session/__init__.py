"""The pool that a notebook uses: found, started, connected to; runs in the notebook's kernel."""

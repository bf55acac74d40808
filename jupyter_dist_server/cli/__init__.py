"""``jdist``, also ``jupyter dist``: the queue in a terminal; runs in a process of its own."""

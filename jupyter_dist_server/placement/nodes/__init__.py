"""Several nodes: which one each rank gets, and the lease there; runs where pools are started."""

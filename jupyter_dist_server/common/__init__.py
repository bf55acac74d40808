"""What several processes share: errors, paths, process identity, rank specs, pickling."""

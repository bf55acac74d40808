"""What a pool is asked for with, and its validation; runs in the process that starts a pool."""

"""Which process is which, and how much memory it uses; runs in every process of ours."""

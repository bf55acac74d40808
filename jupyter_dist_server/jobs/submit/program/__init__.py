"""What a job runs: scripts, notebooks and their environment; runs in ``jdist`` and the server."""

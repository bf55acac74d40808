"""What a job can be asked for with, and how that is written; runs in ``jdist`` and the server."""

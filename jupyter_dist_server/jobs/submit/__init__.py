"""From a command, a script or REST to jobs in the store; runs in ``jdist`` and in the server."""

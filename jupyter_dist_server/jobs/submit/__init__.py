"""From a command, a script or REST to jobs for the store; runs in ``jdist`` and in the server."""

"""GPUs by REST, by stream and for Prometheus; runs in the Jupyter server."""

"""The queue over REST and the stream; runs in the Jupyter server."""

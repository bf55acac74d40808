"""The queue over REST and the stream: what ``jdist`` does in a terminal."""

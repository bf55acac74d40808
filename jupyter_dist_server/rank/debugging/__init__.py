"""The debugger in a rank: pydevd, and requests that clients send to it; runs in a rank."""

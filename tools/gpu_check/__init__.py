"""``make gpu-check``: what can only be seen on a GPU, as one script and one page of Markdown."""

"""The thin side inside the notebook's kernel: magics, merged output, finding the server."""

"""The jobs of a user and the file that keeps them; runs in whatever reads or changes a job."""

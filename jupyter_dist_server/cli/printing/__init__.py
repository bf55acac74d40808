"""What several commands of ``jdist`` print: tables and sentences; runs in ``jdist``."""

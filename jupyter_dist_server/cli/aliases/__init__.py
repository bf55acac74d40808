"""The programs of gflow and Slurm, for ``jdist``."""

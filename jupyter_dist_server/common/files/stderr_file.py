"""The file in memory to which a rank's stderr leads: what its agent reads there."""

KEPT = 1 << 16
"""Bytes of stderr that are kept although they were read and shown."""
START_BYTES = 8
"""Length of the number that tells where in stderr a cell began."""

"""Tests of the package, run by pytest."""

import sys

SLOW_TO_IMPORT = "rfc3987_syntax"
"""jsonschema tries to import it, which takes each process two seconds, for a format of URLs."""

sys.modules[SLOW_TO_IMPORT] = None  # type: ignore[assignment]

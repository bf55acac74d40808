"""The version of this package."""

from __future__ import annotations


def version() -> str:
    """Return it, as installed."""
    # Here, as it takes longer to import than most of what we need ourselves.
    from importlib import metadata

    try:
        return metadata.version("jupyter-dist-server")
    except metadata.PackageNotFoundError:  # run from a source tree that was never installed
        return "0+unknown"

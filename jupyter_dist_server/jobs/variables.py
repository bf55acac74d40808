"""Environment variables that tell what belongs to the queue's processes."""

from __future__ import annotations

JOB = "JUPYTER_DIST_JOB"
"""The job that a process belongs to, and which start of it."""
DISPATCHER = "JUPYTER_DIST_DISPATCHER"
"""Of dispatchers and their runners: they are no part of a job."""
KERNEL_FOLDER = "JUPYTER_DIST_JOB_KERNEL"
"""Where the kernel of a notebook job has its files; its runner makes and removes the folder."""

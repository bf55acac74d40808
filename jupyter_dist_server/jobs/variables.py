"""Environment variables that mark processes of the queue."""

from __future__ import annotations

JOB = "JUPYTER_DIST_JOB"
"""The job that a process belongs to, and which start of it."""
GPUS = "JDIST_GPU_UUIDS"
"""The job's GPUs: those of `CUDA_VISIBLE_DEVICES`, whatever their numbers are."""
DISPATCHER = "JUPYTER_DIST_DISPATCHER"
"""Marks dispatchers and their runners, which are no part of a job."""
KERNEL_FOLDER = "JUPYTER_DIST_JOB_KERNEL"
"""The folder of a notebook job's kernel; the runner makes and removes it."""
